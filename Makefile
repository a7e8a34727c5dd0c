# The commands a contributor must know: setup, demo, test, lint, bench. Each creates what it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo dashboard test test-long chaos soak lint format bench peers docs fuzz lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## create .venv with pinned versions

$(READY): pyproject.toml constraints.txt setup.py $(wildcard src/framewire/*/_*.c)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "framewire needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[all,dev]'
	@touch $@

demo: $(READY) ## see what framewire does
	$(BIN)/python examples/demo.py

dashboard: $(READY) ## look at what the demo left, in a browser
	@test -d build/demo/lake || { echo "The demo has not left a lake yet: make demo"; exit 1; }
	$(BIN)/framewire dashboard --lake build/demo/lake

test: $(READY) ## run all tests
	$(BIN)/python -m pytest

test-long: $(READY) ## run the tests that take their time
	$(BIN)/python -m pytest -m long

chaos: $(READY) ## trouble a cluster for some minutes, and account for every ask
	$(BIN)/python -m tests.chaos --seconds 180 --rolling 2000

soak: $(READY) ## run a cluster for 20 minutes: memory, descriptors, promises and latency as curves
	$(BIN)/python -m bench.soak --minutes 20 --output build/soak

lint: $(READY) ## style, types and floors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## measure, as ratios within one run
	$(BIN)/python bench/wire.py
	$(BIN)/python bench/node.py
	$(BIN)/python bench/cluster.py
	$(BIN)/python bench/bodies.py
	$(BIN)/python bench/capture.py
	$(BIN)/python bench/flood.py
	$(BIN)/python -m bench.overload --quick
	$(BIN)/python bench/spark.py --messages 1000000

peers: $(READY) ## measure framewire beside what people would use instead, and write docs/benchmarks.md
	$(BIN)/python -m bench.peers
	$(BIN)/python -m bench.scaling
	$(BIN)/python -m bench.overload --json bench/results/overload.json
	$(BIN)/python -m bench.alternatives
	$(BIN)/python -m bench.page

docs: $(READY) ## build the documentation as a site, into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

fuzz: $(READY) ## throw broken frames at the decoder, and hostile peers at every socket, for two minutes
	$(BIN)/python fuzz/wire.py --seconds 60
	$(BIN)/python -m fuzz.cluster --seconds 60

lock: $(READY) ## write constraints.txt anew with the newest versions
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --upgrade --universal --all-extras --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
	  pyproject.toml --output-file constraints.txt

clean: ## remove what was built
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache src/*.egg-info
