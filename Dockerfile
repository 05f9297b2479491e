# `make image` lays out dist/image and gives the arguments. With the base image at hand the build needs no network.
ARG BASE_IMAGE=quay.io/operator-framework/ansible-operator:v1.42.3

# A stage of its own, so that nothing of what installs stays in the image.
FROM ${BASE_IMAGE} AS packages
# For a package index of yours, if the base image should lack a package.
ARG PIP_INDEX_URL=
USER root
COPY requirements.txt /tmp/build/
COPY image/packages.py image/requirements.txt /tmp/build/image/
RUN python3 /tmp/build/image/packages.py /tmp/build/requirements.txt /tmp/build/image/requirements.txt /packages

FROM ${BASE_IMAGE}
ARG BASE_IMAGE
ARG VERSION
ARG REVISION
ARG CREATED
LABEL org.opencontainers.image.title="kubesteward" \
      org.opencontainers.image.description="Keeps workloads on the digest their tag names now, and gives teams namespaces by size" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.source="https://github.com/kubesteward/kubesteward.core" \
      org.opencontainers.image.documentation="https://github.com/kubesteward/kubesteward.core/blob/main/README.md" \
      org.opencontainers.image.licenses="GPL-3.0-or-later" \
      org.opencontainers.image.vendor="kubesteward authors" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.base.name="${BASE_IMAGE}"

USER root
COPY --from=packages /packages/ /
COPY dist/image/licenses/ /licenses/
COPY dist/image/collections/ /usr/share/ansible/collections/
COPY dist/image/ansible/ /opt/ansible/

# User 1001 cannot write beside the sources, nor can anybody on a read-only root: without bytecode each pass would cost
# more than twice as much. Some files of other packages are templates or for another Python, so only ours must compile.
# It counts whatever the times of files, which builders may set; the fixed seed makes it the same in every build.
RUN set -eu; \
    export PYTHONHASHSEED=0; \
    compile="python3 -m compileall -q --invalidation-mode unchecked-hash"; \
    $compile $(python3 -c 'import site; print(*site.getsitepackages())') || true; \
    $compile /usr/share/ansible/collections/ansible_collections/kubernetes/core/plugins || true; \
    $compile -f /usr/share/ansible/collections/ansible_collections/kubesteward/core/plugins

# On a read-only root /tmp is the one folder to write to (an emptyDir), so all that Ansible writes goes there.
ENV ANSIBLE_HOME=/tmp/.ansible \
    ANSIBLE_LOCAL_TEMP=/tmp/.ansible/tmp \
    ANSIBLE_REMOTE_TEMP=/tmp/.ansible/tmp \
    ANSIBLE_COLLECTIONS_PATH=/usr/share/ansible/collections

USER 1001

# Stop the build where an import would still have to compile something. Ansible itself would leave files in /tmp.
RUN python3 -c 'import importlib.util as u, pathlib; \
    packages = [pathlib.Path(u.find_spec(name).origin).parent for name in ("ansible", "kubernetes", "requests")]; \
    roots = [*packages, pathlib.Path("/usr/share/ansible/collections/ansible_collections/kubesteward/core/plugins")]; \
    missing = [str(p) for root in roots for p in root.rglob("*.py") if not pathlib.Path(u.cache_from_source(p)).exists()]; \
    raise SystemExit(f"no bytecode for {missing}" if missing else 0)'
