# Two commands: `make quickstart` runs the benchmark here, `make test` passes its tests. Each sets itself up.
SHELL := /bin/bash
export PYTHON3 ?= python3
VENV := .venv
PYTHON := $(VENV)/bin/python
PIP := $(PYTHON) -m pip --disable-pip-version-check -q

RUN_PACKAGES := gcc=gcc g++=g++ gfortran=gfortran bwrap=bubblewrap taskset=util-linux
TEST_PACKAGES := $(RUN_PACKAGES) sbatch=slurm-client slurmctld=slurmctld slurmd=slurmd slurmdbd=slurmdbd \
	munged=munge mariadbd=mariadb-server-core git=git pgrep=procps

# One step at a time: two of them may want apt-get or the same virtual environment.
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: quickstart test test-fast lint format bench clean help

help:  ## what can be typed
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

quickstart: system-run $(VENV)/.installed  ## run eight kernels, two setups, on this machine
	$(PYTHON) -m experiments.launch +study=quickstart --yes

test: system-test $(VENV)/.installed-dev  ## all tests, the real Slurm included
	$(PYTHON) -m pytest -m "not bench" --reruns 1

test-fast: system-run $(VENV)/.installed-dev  ## the tests that need no Slurm
	$(PYTHON) -m pytest -m "not slurm and not bench" --reruns 1

lint: $(VENV)/.installed-dev  ## ruff and mypy strict
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(VENV)/.installed-dev  ## let ruff write the layout
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

bench: system-run $(VENV)/.installed-dev  ## what a grade costs here, emitted C and numba, drawing and comparing, autotune's gains
	$(PYTHON) -m bench.judge_cost
	$(PYTHON) -m bench.small_grade
	$(PYTHON) -m bench.peak_memory
	$(PYTHON) -m bench.emitted_c
	$(PYTHON) -m bench.numba_threads
	$(PYTHON) -m pytest -q -s -m bench

clean:  ## remove the virtual environment and caches of this checkout
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache

.PHONY: system-run system-test
system-run:
	@scripts/system_packages.sh $(RUN_PACKAGES)
system-test:
	@scripts/system_packages.sh $(TEST_PACKAGES)

# Without python3-venv there is no virtual environment to make.
$(VENV)/bin/python: | system-run
	$(PYTHON3) -m venv --clear $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	@echo "installing Python packages into $(VENV), which takes a minute or two"
	@$(PIP) install -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	@echo "installing Python packages into $(VENV), which takes a minute or two"
	@$(PIP) install -e '.[dev]'
	@touch $@ $(VENV)/.installed
