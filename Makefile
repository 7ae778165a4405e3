# `make demo` and `make test` do everything; each sets up what it needs in .venv.
PYTHON ?=
BIN := .venv/bin
# Compiled modules are kept in .venv and src: without them every process that a test starts compiles its imports anew.
unexport PYTHONDONTWRITEBYTECODE

COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet
LOCKED := embedded desktop pandas parquet postgres plots dev

.PHONY: help setup demo test test-all coverage lint bench lock clean

help:
	@echo "make demo      a short run of each task family: a real model, a real game"
	@echo "make test      lint, types and the tests to run before every commit"
	@echo "make test-all  every test: all languages, PostgreSQL, Ray, vLLM, all attack tables"
	@echo "make coverage  branch coverage of src/ by the tests of make test"
	@echo "make lint      ruff and mypy only"
	@echo "make bench     speed and memory against other harnesses (installs them in .venv-bench)"
	@echo "make setup     just the environment, in .venv"
	@echo "make lock      renew the locked packages after a change of pyproject.toml"
	@echo "make PYTHON=/path/to/python3.13 …   with another Python than python3"

setup:
	@PYTHON="$(PYTHON)" scripts/setup

# One stamp for each set of packages that only some commands need.
.venv/hf .venv/libraries .venv/reasoning-gym .venv/ray .venv/vllm .venv/owa: .venv/%: scripts/setup-extra | setup
	@scripts/setup-extra $*

.venv/libraries: | .venv/hf
.venv/reasoning-gym: requirements-reasoning-gym.lock | .venv/test-all-packages
.venv/vllm: pyproject.toml

.venv/demo-packages: scripts/setup-system | setup
	@scripts/setup-system $@ runtime windows

.venv/test-packages: scripts/setup-system | setup
	@scripts/setup-system $@ runtime windows browser sandbox

.venv/test-all-packages: scripts/setup-system | setup
	@scripts/setup-system $@ runtime windows browser sandbox games database headers toolchains

# One process compiles what the tests import, else each of them would, at the same time. A module that cannot be imported is
# reported by the tests themselves.
.venv/compiled: | .venv/hf
	@$(BIN)/pytest --collect-only -m "not slow" >/dev/null || true
	@touch $@

demo: .venv/demo-packages
	@PATH="$(CURDIR)/$(BIN):$$PATH" scripts/demo

lint: setup
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

# Debian's packages, Python's and the linters do not disturb each other.
test: setup
	@$(MAKE) --no-print-directory --jobs 3 lint .venv/test-packages .venv/compiled
	@$(BIN)/pytest -n 4 --dist worksteal -m "not slow"

test-all: setup
	@$(MAKE) --no-print-directory --jobs 3 lint .venv/test-all-packages .venv/compiled .venv/libraries .venv/reasoning-gym .venv/ray .venv/vllm .venv/owa
	@$(BIN)/pytest -n 3 --dist worksteal

# The data file is named in full: tests change the working directory, and processes that they start are counted, too.
coverage: export COVERAGE_FILE = $(CURDIR)/.coverage
coverage: .venv/test-packages .venv/hf
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -n 3 --dist worksteal -m "not slow"
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

bench: .venv/ray
	@$(BIN)/python bench/core.py
	@$(BIN)/python bench/shapes.py
	@$(BIN)/python bench/answers.py
	@$(BIN)/python bench/png.py
	@$(BIN)/python bench/sandbox.py
	@$(BIN)/python bench/code_family.py
	@$(BIN)/python bench/agent_envs.py
	@$(BIN)/python bench/desktop.py
	@$(BIN)/python bench/results_page.py
	@$(BIN)/python bench/scale_ray.py

lock: setup
	@echo uv | $(COMPILE) - --output-file requirements-uv.lock
	@$(COMPILE) pyproject.toml $(LOCKED:%=--extra %) --output-file requirements.lock
	@$(COMPILE) pyproject.toml --extra reasoning-gym --constraints requirements.lock --output-file requirements-reasoning-gym.lock

clean:
	rm -rf .venv .venv-bench .venv-bigcode .venv-owa .venv-vllm .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
