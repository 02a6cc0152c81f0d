# One command per job; `make help` lists them.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help setup run test suite installed compiled quick slow flaky bench lint types docs audit clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

.venv/ready: requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.11 ..."; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --no-compile --requirement requirements.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q -j 0 -x '/tests/' .venv/lib || true # on all cores, where pip takes one
	@touch .venv/ready

setup: .venv/ready ## environment from pinned requirements, in .venv

run: .venv/ready ## the main job on built-in data, then where to look
	$(BIN)/python -m pipeline run

# Engines are tested where Java 17 or newer is found; `make run` never installs Spark.
JAVA := $(shell java -version 2>&1 | grep -qE 'version "(1[7-9]|[2-9][0-9])' && echo yes)

.venv/spark-ready: .venv/ready requirements-spark.txt
	$(if $(JAVA),$(BIN)/pip install --quiet --requirement requirements-spark.txt,@echo "no Java 17: the tests of Spark are left out")
	$(if $(JAVA),@touch .venv/spark-ready)

# The tests start a hundred commands: bytecode is kept for these, whatever the shell says.
# Numba's loops are compiled once while the rest is installed: each process of the tests would compile them again.
test: .venv/ready ## lint, types, documentation and tests (minutes)
	$(MAKE) --jobs=3 --output-sync installed compiled lint types
	$(MAKE) --jobs=2 docs suite

suite: .venv/ready
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal

installed:
	$(MAKE) --jobs=1 .venv/spark-ready .venv/docs-ready

compiled: .venv/ready
	$(BIN)/python -m pipeline run data.schema=demo_callers data.rows=3000 quiet=true hydra.run.dir=build/compiled
	@rm -rf build/compiled

QUICK := tests/test_architecture.py tests/accounting tests/public tests/selection tests/synthesis

quick: .venv/ready ## the laws of the mechanisms and of synthesis, no commands (a minute)
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal $(QUICK)

lint: .venv/ready ## ruff and the one-way doors between the rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: .venv/ready ## mypy --strict
	$(BIN)/mypy mechanisms synthesis evaluation pipeline

.venv/docs-ready: .venv/ready requirements-docs.txt
	$(BIN)/pip install --quiet --requirement requirements-docs.txt
	@touch .venv/docs-ready

docs: .venv/docs-ready ## the documentation site, strictly, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

slow: .venv/ready .venv/spark-ready ## checks that take longer than a coffee, and five times the examples of dear laws
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal -m slow

flaky: .venv/ready .venv/spark-ready ## whether a test is red by chance: those that draw fresh noise, 30 times over (an hour)
	$(BIN)/python -m tests.flaky --times 30

audit: .venv/ready .venv/spark-ready ## attack the privacy claims, write AUDIT.md (minutes)
	$(BIN)/python -m tests.audit

bench: .venv/ready ## time, memory and error, ours and peers': build/ and docs/benchmarks/peers.md (an hour; again for the rest)
	$(BIN)/python -m tests.bench
	$(BIN)/python -m tests.bench.grid --part quick
	$(BIN)/python -m tests.bench.numbers --seeds 5
	$(BIN)/python -m tests.bench.peers

clean: ## remove the environment and every output
	rm -rf .venv build outputs multirun .mypy_cache .ruff_cache .pytest_cache
