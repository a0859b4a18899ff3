# Two commands do all the set-up: `make demo` and `make test`.

# A Python of the reader's own choice: make demo PYTHON=/path/to/python3.12
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo "$$python"; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
# Some machines switch byte code off for everything; here every worker would compile all again.
unexport PYTHONDONTWRITEBYTECODE
# The theme prints an advertisement at each build otherwise.
export NO_MKDOCS_2_WARNING := 1

PIP_INSTALL := $(BIN)/python -m pip install --quiet --no-input --disable-pip-version-check
DEMO_RESULTS := .demo/results
DEMO := $(BIN)/pytest --models careful-script,hasty-script -n 2 cases/executor \
	--modelbench-results $(DEMO_RESULTS)
# More arguments for the tests: make tests ARGS='-k store -x'
ARGS ?=
# Some of the tests only: make tests TESTS=tests/unit/store
TESTS ?= tests
# One more than there are cores: many tests wait, for a time limit, a window or another process.
WORKERS ?= $(shell expr $$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN) + 1)
PYTEST := $(BIN)/pytest -n $(WORKERS) --timeout 300 $(ARGS)

.PHONY: help demo agents test check install install-dev lint types docs tests quick soak containers fuzz coverage format clean

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

demo: install ## install, and run the main job on two scripted candidates
	@rm -rf .demo
	$(DEMO)

test: install-dev ## install, and run all that CI runs: lint, types, docs, every test
	@$(MAKE) --no-print-directory -j lint types docs
	@$(MAKE) --no-print-directory tests

check: test ## the same, by the name that other projects use

install: $(VENV)/installed ## make the environment, with what a user needs

install-dev: $(VENV)/installed-dev ## make the environment, with what a developer needs

# The stamps are renewed when pyproject.toml changes, and at no other time: the install is editable.
$(VENV)/installed: pyproject.toml
	@test -n "$(PYTHON)" || { echo 'No Python 3.11 or newer was found: name one with PYTHON=' >&2; exit 1; }
	@echo "Making $(VENV) with $(PYTHON) and installing into it (a few minutes the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) --editable .
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	@echo "Installing the tools of a developer into $(VENV)"
	@$(PIP_INSTALL) --editable '.[dev]'
	@touch $@

lint: install-dev ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install-dev ## mypy, strict
	$(BIN)/mypy

docs: install-dev ## build the documentation; a warning is an error
	$(BIN)/mkdocs build --quiet --strict --site-dir build/site

tests: install-dev ## every test, the slow ones too
	$(PYTEST) $(TESTS)

quick: install-dev ## the tests that take no more than a few seconds each
	$(PYTEST) -m 'not slow' $(TESTS)

soak: install-dev ## 2,000 attempts at -n 4, and 200 that are killed midway: nothing is left behind
	MODELBENCH_SOAK=2000 $(BIN)/pytest tests/plugin/test_soak.py

containers: install-dev ## every attack in containers of Docker and Podman, where these run
	MODELBENCH_LEVELS=docker,podman $(PYTEST) tests/agreement/test_attacks.py -k 'docker or podman'

explore: install-dev ## the property tests with 2,000 examples each, new ones every time
	MODELBENCH_EXAMPLES=explore $(PYTEST) -m hypothesis $(TESTS)

# Not a developer's dependency: it is there for few platforms.
fuzz: install-dev ## a million inputs each for what the trusted side reads of a candidate
	@$(PIP_INSTALL) atheris
	for target in message manifest harvest; do \
	$(BIN)/python tests/fuzz/trusted_side.py $$target -runs=1000000 -max_len=4096 || exit 1; done

agents: install-dev ## Codex and Claude Code as released, from npm, beside the programs that `make tests` tries
	MODELBENCH_AGENTS=all $(BIN)/pytest --timeout 900 tests/unit/protocols/test_real_programs.py $(ARGS)

coverage: install-dev ## every test, and the lines that none reaches
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest --timeout 300 $(ARGS) $(TESTS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --show-missing --skip-covered

format: install-dev ## mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove the environment, builds and caches
	rm -rf $(VENV) .demo build dist site .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache
