# Two commands: `make demo` shows what relayout does, `make test` checks everything.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SEED ?= 0
MODELS ?= 20000
PAIRS ?= 100000
FILES ?= 5000
MUTANTS ?= 100
# A folder of models, if there is one, as benchmarks.zoo takes it.
ZOO ?=

.PHONY: demo test judge lint types layers tests docs format clean

demo: $(VENV)/demo.stamp
	$(BIN)/relayout demo

test: lint types layers tests

# Hours of random models and damaged files; what they found is in docs/trust.md.
judge: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks.judge --models $(MODELS) --seed $(SEED) --compile 4
	$(BIN)/python -m benchmarks.near_miss --pairs $(PAIRS) --seed $(SEED)
	$(BIN)/python -m benchmarks.fuzz_files $(FILES) $(SEED)
	$(BIN)/python -m benchmarks.conformance
	$(BIN)/python -m benchmarks.feature_graphs
	$(BIN)/python -m benchmarks.fuse_limits
	$(BIN)/python -m benchmarks.wrapped
	$(BIN)/python -m benchmarks.suite_roads
	$(BIN)/python -m benchmarks.peers_verified --suite $(ZOO)
	$(BIN)/python -m benchmarks.mutation rules --mutants $(MUTANTS) --seed $(SEED)
	$(BIN)/python -m benchmarks.mutation lowerings --mutants $(MUTANTS) --seed $(SEED)
	$(BIN)/python -m benchmarks.mutation proof --mutants $(MUTANTS) --seed $(SEED)

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev.stamp
	$(BIN)/mypy

layers: $(VENV)/dev.stamp
	$(BIN)/lint-imports

tests: $(VENV)/dev.stamp
	$(BIN)/pytest -n auto

# The parts that are made from the code, then the site, in build/site; a warning is an error.
docs: $(VENV)/dev.stamp
	$(BIN)/python -m docs
	$(BIN)/python -m docs.site

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/dev.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev,torch,litert]'
	touch $@ $(VENV)/demo.stamp
