# One target sets everything up; the others depend on it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Python compiles what it imports: compiling all of each package takes half of the time of an installation.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

.PHONY: help demo test lint man check docs bench simulation agreement fuzz release-check clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 24

# Made anew where pyproject.toml changed: another Python may have made it, and a mixture of both fails.
$(VENV)/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "decal needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..." >&2; exit 2; }
	$(PYTHON) -m venv --clear $(VENV)
	$(INSTALL) --editable '.[dev]'
	@touch $@

demo: $(VENV)/.ready ## advice on a shipped real data set
	$(BIN)/decal demo

# Tests see what a user's shell has, and nothing of what this machine sets beside it. One thread of linear algebra for
# each process of tests: several on the same cores wait for each other, and take half as long again.
test: $(VENV)/.ready ## run the tests; all of them: make test TESTS="-m ''"
	env -i PATH="$$PATH" HOME="$$HOME" LANG=C.UTF-8 OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(TESTS)

lint: $(VENV)/.ready ## linter, formatter and type checker
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

man: $(VENV)/.ready ## write the man pages and the generated blocks of README and docs
	$(BIN)/python -m docs.manual

check: $(VENV)/.ready ## fail where a generated page is stale
	$(BIN)/python -m docs.manual --check

docs: $(VENV)/.docs ## build the docs site into site/; fails on a link that leads nowhere
	$(BIN)/python -m sphinx -q -W --keep-going -E -b html -d build/docs docs site
	@echo "site/index.html: $$(find site -name '*.html' | wc -l) pages, no broken link"

$(VENV)/.docs: $(VENV)/.ready
	$(INSTALL) --editable '.[docs]'
	@touch $@

bench: $(VENV)/.ready ## speed and memory as ratios against numpy, pyarrow and scikit-learn
	$(BIN)/python -m benchmarks.run

simulation: $(VENV)/.ready ## coverage and right advice in worlds of known truth; writes simulation/RESULTS.md
	$(BIN)/python -m simulation.study

agreement: $(VENV)/.ready ## numbers of 10^6 hard rows from memory, streams, engines and exports: an hour
	$(BIN)/python -m tests.helpers.agreement

fuzz: $(VENV)/.ready ## 200,000 hostile, broken and extreme inputs, and 500 killed runs
	$(BIN)/python -m tests.fuzz
	$(BIN)/python -m tests.fuzz.kills

release-check: $(VENV)/.ready ## build sdist and wheel, and run decal from each alone, with oldest and newest libraries
	$(BIN)/python -m tests.helpers.release

clean: ## remove what the other targets made
	rm -rf $(VENV) build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
