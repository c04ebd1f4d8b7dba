PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: test test-all demo lint bench-inner bench-solve bench-ratio bench-learn clean

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check -e '.[storm,gurobi]' pytest pytest-xdist hypothesis ruff mypy playwright
	touch $@

lint: $(VENV)/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

test: lint
	$(BIN)/pytest -q -n 2 -m "not slow"

test-all: lint
	$(BIN)/pytest -q -n 2

demo: $(VENV)/.ready
	$(BIN)/python examples/demo.py -o demo

bench-inner: $(VENV)/.ready
	mkdir -p results
	$(BIN)/python benchmarks/inner.py --json results/bench-inner.json

bench-solve: $(VENV)/.ready
	$(BIN)/python benchmarks/solve.py --json results/bench-solve.json

bench-ratio: $(VENV)/.ready
	$(BIN)/python benchmarks/solve_ratio.py --json results/bench-ratio.json

bench-learn: $(VENV)/.ready
	$(BIN)/python benchmarks/learn.py aircraft --json results/bench-learn-aircraft.json
	$(BIN)/python benchmarks/learn.py sysadmin --json results/bench-learn-sysadmin.json

clean:
	rm -rf $(VENV) build dist
