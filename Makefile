PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: test test-all quick coverage demo lint types docs site bench-shapes bench-inner bench-solve bench-ratio bench-learn reproduce-solving reproduce-learning clean

# byte code is written when a module is first imported, also where the environment forbids it
unexport PYTHONDONTWRITEBYTECODE

# uv installs in seconds what takes pip a minute; pip does it where uv finds no package index
PIP := $(BIN)/pip install -q --disable-pip-version-check --no-compile
INSTALL = $(PYTHON) -m venv $(VENV) && \
	{ $(PIP) uv && $(BIN)/uv pip install -q --python $(BIN)/python -e '$(1)' || $(PIP) -e '$(1)'; }

# the demo compares with the paper's relaxation, which needs an extra
$(VENV)/.demo-ready: pyproject.toml
	$(call INSTALL,.[mccormick])
	touch $@

# the extra `dev`: test tools, and the solvers that tests compare with
$(VENV)/.test-ready: pyproject.toml
	$(call INSTALL,.[dev])
	touch $(VENV)/.demo-ready $@

lint: $(VENV)/.test-ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: $(VENV)/.test-ready
	$(BIN)/mypy

# pages that are made by scripts, and the site
docs: $(VENV)/.test-ready
	$(BIN)/python docs/domains.py
	$(BIN)/python docs/gallery.py
	$(MAKE) site

site: $(VENV)/.test-ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q --strict -d results/site

# worksteal: each process begins elsewhere, so that they do not compile the same kernels, and
# fixtures of a file are made once
PYTEST := $(BIN)/pytest -q -n 2 --dist worksteal

quick: $(VENV)/.test-ready
	$(PYTEST) -m "not slow"

# Python lines that the quick tests run, at least 90 %; a third slower than without counting
coverage: $(VENV)/.test-ready
	$(PYTEST) -m "not slow" --cov --cov-report term

# types are checked while a process waits for the kernel that another one compiles
test: $(VENV)/.test-ready
	$(MAKE) -j 4 lint types site quick

test-all: lint types
	$(PYTEST) --hypothesis-profile many

demo: $(VENV)/.demo-ready
	$(BIN)/python examples/demo.py -o demo

bench-inner: $(VENV)/.test-ready
	mkdir -p results
	$(BIN)/python benchmarks/inner.py --json results/bench-inner.json

bench-shapes: $(VENV)/.test-ready
	$(BIN)/python benchmarks/shapes/run.py --json results/bench-shapes.json

bench-solve: $(VENV)/.test-ready
	$(BIN)/python benchmarks/solve.py --json results/bench-solve.json

bench-ratio: $(VENV)/.test-ready
	$(BIN)/python benchmarks/solve_ratio.py --json results/bench-ratio.json

bench-learn: $(VENV)/.test-ready
	$(BIN)/python benchmarks/learn.py aircraft --json results/bench-learn-aircraft.json
	$(BIN)/python benchmarks/learn.py sysadmin --json results/bench-learn-sysadmin.json

# the paper's tables and figures again: experiments/README.md has the options for ARGS
reproduce-solving: $(VENV)/.test-ready
	$(BIN)/python -m experiments.solving $(ARGS)

reproduce-learning: $(VENV)/.test-ready
	$(BIN)/python -m experiments.learning $(ARGS)

clean:
	rm -rf $(VENV) build dist
