# Two commands do everything: `make demo` and `make test`. Each sets up what it needs.
PYTHON ?= python3
BIN := .venv/bin

COMPILE := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 \
  --generate-hashes --no-emit-index-url --no-header --quiet

.PHONY: help setup demo test test-long lint bench lock clean

help:
	@echo "make demo   a real exam with the embedded model"
	@echo "make test   lint, types and all tests"
	@echo "make test-long  the same, and what takes long"
	@echo "make lint   ruff and mypy only"
	@echo "make bench  speed and memory against other harnesses (installs them in .venv-bench)"
	@echo "make setup  just the environment, in .venv"
	@echo "make lock   renew the locked packages after a change of pyproject.toml"

setup: .venv/ready

.venv/ready: requirements.lock pyproject.toml scripts/setup
	@PYTHON=$(PYTHON) scripts/setup

.venv/reasoning-gym: .venv/ready requirements-reasoning-gym.lock scripts/setup-reasoning-gym
	@scripts/setup-reasoning-gym

demo: setup .venv/windows
	@PATH="$(CURDIR)/$(BIN):$$PATH" scripts/demo

lint: setup
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

.venv/hf: .venv/ready scripts/setup-hf .venv/reasoning-gym
	@scripts/setup-hf

.venv/ray: .venv/ready scripts/setup-ray .venv/hf
	@scripts/setup-ray

.venv/windows: .venv/ready scripts/setup-system
	@scripts/setup-system $@ windows

.venv/system: .venv/ready scripts/setup-system
	@scripts/setup-system $@ windows games toolchains database browser

# Debian's packages, Python's (one after the other, into one place) and the linters do not disturb each other.
test: setup
	@$(MAKE) --no-print-directory --jobs 3 lint .venv/system .venv/hf
	@$(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder

# The same with what takes long: all 10,000 hostile programs, every compiler for every benchmark, Ray clusters.
test-long: export PROCTOR_LONG_TESTS = 1
test-long: .venv/ray test

bench: setup .venv/ray
	@$(BIN)/python bench/core.py
	@$(BIN)/python bench/shapes.py
	@$(BIN)/python bench/png.py
	@$(BIN)/python bench/sandbox.py
	@$(BIN)/python bench/code_family.py
	@$(BIN)/python bench/agents_worlds.py
	@$(BIN)/python bench/desktop.py
	@$(BIN)/python bench/results_page.py
	@$(BIN)/python bench/scale_ray.py

lock: setup
	@$(BIN)/python -m pip install --quiet uv
	@$(COMPILE) --extra embedded --extra desktop --extra pandas --extra parquet --extra postgres --extra plots --extra dev --output-file requirements.lock
	@$(COMPILE) --extra reasoning-gym --constraints requirements.lock --output-file requirements-reasoning-gym.lock

clean:
	rm -rf .venv .venv-bench .pytest_cache .mypy_cache .ruff_cache .hypothesis
