# `make` alone lists the targets. Every target that needs the virtual environment makes it first.
PYTHON ?= python3
ONLY ?=
IMG ?= kubesteward:1.0.0
# More options for the build, e.g. --pull=never or --build-arg PIP_INDEX_URL=...
BUILD_FLAGS ?=
BASE_IMAGE ?= quay.io/operator-framework/ansible-operator:v1.42.3
CONTAINER_TOOL ?= $(firstword $(notdir $(shell command -v docker podman buildah 2>/dev/null)))
# For deploy and undeploy; IMG counts there only where somebody names it, since an overlay may have another image.
OVERLAY ?= config/default
WAIT ?= 300
DRY_RUN ?=
FORCE ?=
KEEP ?=
CONFIRM ?=
WITH ?=
# Integration tests at once: most of their time is spent waiting for Pods, whatever the machine has.
WORKERS ?= 4
comma := ,
# More options for ansible-operator in `make run`, e.g. --ansible-args='-e @/etc/steward/settings.yml'
RUN_FLAGS ?=
ANSIBLE_OPERATOR ?= $(shell command -v ansible-operator 2>/dev/null)

BIN := .venv/bin
STAMP := .cache/setup.stamp
export PATH := $(CURDIR)/$(BIN):$(PATH)
# In a collection Molecule would look into extensions/ alone.
export MOLECULE_GLOB := molecule/*/molecule.yml
export PYTHONPATH := $(CURDIR)/.cache/collections:$(CURDIR)/tests

# An exported KUBECONFIG may be somebody's production: tests, demo and bench ask the testbed instead.
ISOLATED := env -u KUBECONFIG
TESTBED := $(ISOLATED) $(BIN)/python -m testbed

.DEFAULT_GOAL := help
.PHONY: help setup lint lint-python lint-types lint-yaml lint-ansible lint-config lint-docs lint-galaxy lint-sanity format \
	unit compat integration programs molecule test test-long \
	bench demo testbed-up testbed-down testbed-status run build image bundle install uninstall deploy undeploy clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## make the virtual environment and fetch the collections
	@$(PYTHON) hack/setup.py

$(STAMP): hack/setup.py requirements.txt tests/requirements.txt
	@$(PYTHON) hack/setup.py
	@touch $@

# Two at a time, each with its output in one piece; `make lint-NAME` is one of them.
lint: $(STAMP) ## check style and types, and what Ansible's registries check of the collection as it is built
	@+$(MAKE) --no-print-directory --jobs=2 --output-sync=target --keep-going \
		lint-sanity lint-ansible lint-docs lint-galaxy lint-types lint-python lint-yaml lint-config

lint-python: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint-types: $(STAMP)
	$(BIN)/mypy

lint-yaml: $(STAMP)
	$(BIN)/yamllint --strict .

lint-ansible: $(STAMP)
	$(BIN)/ansible-lint
	$(BIN)/antsibull-changelog lint

lint-sanity: $(STAMP) ## ansible-test sanity, the longest of lint: 1 to 2 minutes
	@$(BIN)/python hack/gates.py sanity

lint-galaxy: $(STAMP)
	@$(BIN)/python hack/gates.py galaxy

lint-docs: $(STAMP)
	@$(BIN)/python hack/gates.py docs

lint-config:
	@if command -v kubectl >/dev/null; then set -e; for folder in $(patsubst %/,%,$(dir $(wildcard config/*/kustomization.yaml))); do \
		echo "kubectl kustomize $$folder"; kubectl kustomize $$folder >/dev/null; done; \
	else echo "SKIPPED [1] lint-config: kubectl is missing: config/ was not rendered"; fi

format: $(STAMP) ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

unit: $(STAMP) ## run the unit tests, with coverage
	$(ISOLATED) $(BIN)/pytest tests/unit -m "not long" --numprocesses 2 --cov --cov-report=term --cov-report=json:.cache/coverage.json
	@$(BIN)/python hack/branches.py .cache/coverage.json 90

compat: $(STAMP) ## run the unit tests with the oldest and the newest Ansible that are supported
	$(ISOLATED) $(BIN)/python hack/compat.py

integration: $(STAMP) ## run the integration tests on the testbed, side by side, each Molecule scenario as one of them; WORKERS=4
	$(ISOLATED) $(BIN)/pytest tests/integration -m "not long" --numprocesses $(WORKERS) --dist loadscope --no-loadscope-reorder

# whoever waits for one of them waits for a single builder; tests that need none of them go first
programs: $(STAMP) ## build what integration tests need besides the testbed, where it is missing
	@nice $(ISOLATED) $(BIN)/python -m integration.programs

molecule: $(STAMP) ## run the Molecule scenarios alone, with all that they print
	@environment="$$($(TESTBED) up --with network-policies)" && eval "$$(echo "$$environment" | grep '^export ')" && $(BIN)/molecule test --all

test: $(STAMP) ## run lint, unit tests, testbed and integration tests, Molecule among them, with a table of times
	@$(ISOLATED) $(BIN)/python hack/test.py

test-long: $(STAMP) ## run the tests that take minutes, and property tests with 2,000 examples each
	$(ISOLATED) KUBESTEWARD_LONG=1 $(BIN)/pytest tests/unit tests/integration -m "long or hypothesis"

bench: $(STAMP) ## measure what a pass costs; ONLY=name,... for some of it
	$(ISOLATED) $(BIN)/python -m bench $(if $(ONLY),--only $(ONLY))

demo: $(STAMP) ## watch a Pod move to the image pushed a moment ago
	@$(ISOLATED) $(BIN)/python hack/demo.py

testbed-up: $(STAMP) ## start a real cluster and registry on this machine; WITH=network-policies
	@$(TESTBED) up $(if $(WITH),--with "$(WITH)")

testbed-down: $(STAMP) ## stop just what testbed-up started
	@$(TESTBED) down

testbed-status: $(STAMP) ## say what runs, and how to reach it
	@$(TESTBED) status

run: $(STAMP) ## run ansible-operator on this machine against the cluster of your KUBECONFIG; WATCH_NAMESPACE=name,...
	@test -n "$(ANSIBLE_OPERATOR)" || { echo "ansible-operator is not on PATH. Take the file for this machine from the releases of \
	operator-framework/ansible-operator-plugins (v1.42.3), make it executable, then: make run ANSIBLE_OPERATOR=./ansible-operator" >&2; exit 1; }
	$(ANSIBLE_OPERATOR) run --watches-file=watches.yaml --metrics-bind-address=127.0.0.1:8443 --health-probe-bind-address=127.0.0.1:6789 $(RUN_FLAGS)

build: $(STAMP) ## build the collection into dist/
	@rm -rf dist
	$(BIN)/ansible-galaxy collection build --output-path dist

image: build ## build the operator's image with docker, podman or buildah: IMG=..., CONTAINER_TOOL=podman, BASE_IMAGE=...
	@test -n "$(CONTAINER_TOOL)" || { echo "No docker, podman or buildah on PATH. Install one, or name it: make image CONTAINER_TOOL=..." >&2; exit 1; }
	@command -v $(firstword $(CONTAINER_TOOL)) >/dev/null || { echo "There is no $(firstword $(CONTAINER_TOOL)) on PATH, which CONTAINER_TOOL names." >&2; exit 1; }
	@arguments="$$($(BIN)/python hack/image.py '$(CONTAINER_TOOL)')" && set -x && \
	$(CONTAINER_TOOL) build $$arguments --build-arg BASE_IMAGE=$(BASE_IMAGE) $(BUILD_FLAGS) --tag $(IMG) .

bundle: $(STAMP) ## write bundle/ and bundle.Dockerfile, which OLM installs the operator from, out of config/
	@$(BIN)/python -m hack.bundle --image $(IMG)

install: ## put the CRDs into the cluster of your KUBECONFIG
	@command -v kubectl >/dev/null || { echo "There is no kubectl on PATH; install it, and point KUBECONFIG to the cluster." >&2; exit 1; }
	kubectl apply --server-side -k config/crd

uninstall: $(STAMP) ## take the CRDs, and every resource of theirs, out of it; CONFIRM=yes, KEEP=deployments
	@$(BIN)/python -m hack.uninstall $(if $(filter yes,$(CONFIRM)),--confirm) $(patsubst %,--keep %,$(subst $(comma), ,$(KEEP)))

deploy: $(STAMP) ## install or upgrade the operator: IMG=..., OVERLAY=config/single-namespace, DRY_RUN=1, FORCE=yes,settings
	@$(BIN)/python -m hack.deploy --overlay "$(OVERLAY)" --seconds $(WAIT) $(if $(filter-out file,$(origin IMG)),--image "$(IMG)") \
		$(if $(DRY_RUN),--dry-run) $(if $(filter yes,$(subst $(comma), ,$(FORCE))),--force) \
		$(if $(filter settings,$(subst $(comma), ,$(FORCE))),--force-settings)

undeploy: $(STAMP) ## let go of everything, then remove the operator: DRY_RUN=1, KEEP=digests,namespaces, FORCE=tags
	@$(BIN)/python -m hack.undeploy --overlay "$(OVERLAY)" $(if $(DRY_RUN),--dry-run) $(patsubst %,--keep %,$(subst $(comma), ,$(KEEP))) $(patsubst %,--force %,$(FORCE))

clean: ## remove what setup and the checks made; a testbed stays as it is
	rm -rf .venv .cache/collections .cache/gates $(STAMP) .cache/coverage.json .ansible dist logs bench/out .coverage* .pytest_cache .ruff_cache .mypy_cache
