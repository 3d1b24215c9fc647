# `make help` lists what a person can do here.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := $(VENV)/.demo
# several threads for matrices as small as ours wait for each other
export OPENBLAS_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help demo test homeassistant attacks check bench lab docs dist clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Cloakwork needs Python 3.11 or later; set PYTHON=..."; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@echo "downloading and installing NumPy, SciPy, Numba and other libraries into $(VENV), once: $(size), a few minutes ..."
	@$(BIN)/python -m pip install $(if $(MAKE_TERMOUT),,--quiet) --disable-pip-version-check $(options) --constraint constraints.txt --editable '.[$(extras)]'
endef

$(STAMP): extras := dev
$(STAMP): size := about 2.3 GB on disk
$(STAMP): pyproject.toml constraints.txt
	$(install)
	@echo "compiling the solvers (once, a minute or two) ..."
	@$(BIN)/python -m tests.compilation
	@touch $(STAMP)

# without the parts of the tests, which are as large again; Python and Numba compile what is used as it is used
$(DEMO): options := --no-compile
$(DEMO): extras := collect,parquet,plot
$(DEMO): size := about 750 MB on disk
$(DEMO): pyproject.toml constraints.txt
	$(install)
	@touch $(DEMO)

demo: $(or $(wildcard $(STAMP)),$(DEMO)) ## a living map of a flat in the browser; without a terminal a picture, out/demo.png
	@$(BIN)/cloakwork demo --out out

# A worker waits a third of its time for brokers, browsers and devices: four keep two cores busy. Files run in the
# order of their folders, which puts those that take long first. Bytecode is kept even where the environment says not
# to: otherwise each worker, and each program that a test starts, compiles the whole package again.
test: export PYTHONDONTWRITEBYTECODE =
test: $(STAMP) ## run all tests
	@scripts/install-parts
	@$(BIN)/python -m pytest -q --numprocesses 4 --dist loadfile --no-loadscope-reorder

# Not a part of `make test`: it takes 500 MB and minutes to install, and this one version needs Python 3.11.
HOMEASSISTANT := .parts/homeassistant
homeassistant: $(STAMP) ## install a real Home Assistant into .parts/ (once, 500 MB), and test with it
	@test -e $(HOMEASSISTANT)/.installed || { \
	  echo "installing Home Assistant into $(HOMEASSISTANT) (once, some minutes) ..."; \
	  python3.11 -m venv $(HOMEASSISTANT) && \
	  $(HOMEASSISTANT)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/deploy/home-assistant.txt && \
	  touch $(HOMEASSISTANT)/.installed; }
	@CLOAKWORK_HOME_ASSISTANT=$(HOMEASSISTANT)/bin/hass $(BIN)/python -m pytest -q tests/deploy/test_home_assistant.py

attacks: $(STAMP) ## attack every claim at full size; how near each attack came goes to docs/tables/attacks.txt
	@scripts/install-parts
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal --full-attacks --attacks-table docs/tables/attacks.txt tests/attacks

check: $(STAMP) ## lint, types and import layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy src papers tests benchmarks examples scripts
	@$(BIN)/python -m pytest -q tests/test_layers.py

bench: $(STAMP) ## measure speed and memory against named rivals (some: make bench ONLY="building page")
	@$(BIN)/python -m benchmarks.run $(ONLY)

lab: $(STAMP) ## run every experiment at full size and write docs/science/results/; resumes where it was interrupted
	@$(BIN)/python -m papers run all --out docs/science/results

docs: $(STAMP) ## run the stories in examples/, and build the documentation into site-docs/
	@$(BIN)/mkdocs build --strict

dist: $(STAMP) ## build the wheels and the bill of materials, and try the wheels in clean environments
	@scripts/dist

clean: ## remove everything that the other targets made
	rm -rf $(VENV) .parts site-docs out dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src -name '*.nb[ic]' -delete
