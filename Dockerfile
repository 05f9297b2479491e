ARG BASE_IMAGE=quay.io/operator-framework/ansible-operator:v1.42.3
FROM ${BASE_IMAGE}

# Made by `make build`.
ARG COLLECTION=dist/kubesteward-core-1.0.0.tar.gz

USER root
COPY requirements.txt requirements.yml ${COLLECTION} /tmp/build/

# The base image may come without pip. What root's ansible-galaxy leaves behind must not lie in the operator's home.
RUN set -eu; \
    export ANSIBLE_HOME=/tmp/build/ansible; \
    python3 -m pip --version || python3 -m ensurepip || { \
      microdnf install -y --setopt=install_weak_deps=0 "python$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')-pip"; \
      microdnf clean all; }; \
    python3 -m pip install --no-cache-dir --requirement /tmp/build/requirements.txt; \
    ansible-galaxy collection install --collections-path /usr/share/ansible/collections \
      --requirements-file /tmp/build/requirements.yml; \
    ansible-galaxy collection install --collections-path /usr/share/ansible/collections /tmp/build/*.tar.gz; \
    rm -rf /tmp/build

# User 1001 cannot write beside the sources, nor can anybody on a read-only root: without bytecode each pass would cost
# more than twice as much. Some files of other packages are templates or for another Python, so only ours must compile.
RUN set -eu; \
    compile="python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash"; \
    $compile $(python3 -c 'import site; print(*site.getsitepackages())') || true; \
    $compile /usr/share/ansible/collections/ansible_collections/kubernetes/core/plugins || true; \
    $compile -f /usr/share/ansible/collections/ansible_collections/kubesteward/core/plugins

COPY watches.yaml /opt/ansible/watches.yaml
COPY playbooks/ /opt/ansible/playbooks/

# On a read-only root /tmp is the one folder to write to (an emptyDir), so all that Ansible writes goes there.
ENV ANSIBLE_HOME=/tmp/.ansible \
    ANSIBLE_LOCAL_TEMP=/tmp/.ansible/tmp \
    ANSIBLE_REMOTE_TEMP=/tmp/.ansible/tmp \
    ANSIBLE_COLLECTIONS_PATH=/usr/share/ansible/collections

USER 1001

# Stop the build where an import would still have to compile something.
RUN python3 -c 'import importlib.util as u, pathlib, ansible.cli.playbook as a, kubernetes.client as k, requests as r; \
    root = pathlib.Path("/usr/share/ansible/collections/ansible_collections/kubesteward/core/plugins"); \
    missing = [p for p in [a.__file__, k.__file__, r.__file__, *map(str, root.rglob("*.py"))] if not pathlib.Path(u.cache_from_source(p)).exists()]; \
    raise SystemExit(f"no bytecode for {missing}" if missing else 0)'
