# One target sets everything up; the others depend on it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := fixtures/fox_news.parquet

.PHONY: demo test lint man check bench simulation agreement fuzz clean

$(VENV)/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "decal needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/.ready ## set up, then evaluate and recommend on a shipped real data set
	$(BIN)/decal evaluate $(DEMO) --score 'p_*' --label y --features 'x*' --threshold 0.3 --missing drop
	$(BIN)/decal recommend $(DEMO) --score p_hatesonar --label y --features 'x*' --threshold 0.3

# Tests see what a user's shell has, and nothing of what this machine sets beside it.
test: $(VENV)/.ready ## set up, then run the tests; all of them: make test TESTS="-m ''"
	env -i PATH="$$PATH" HOME="$$HOME" LANG=C.UTF-8 $(BIN)/python -m pytest $(TESTS)

lint: $(VENV)/.ready ## linter, formatter and type checker
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

man: $(VENV)/.ready ## write the man pages and the generated blocks of README and docs
	$(BIN)/python -m decal_cli.commands.manual

check: $(VENV)/.ready ## fail where a generated page is stale
	$(BIN)/python -m decal_cli.commands.manual --check

bench: $(VENV)/.ready ## speed and memory as ratios against numpy, pyarrow and scikit-learn
	$(BIN)/python -m benchmarks.run

simulation: $(VENV)/.ready ## coverage and right advice in worlds of known truth; writes docs/simulation.md
	$(BIN)/python -m simulation.study

agreement: $(VENV)/.ready ## numbers of 10^6 hard rows from memory, streams, engines and exports: an hour
	$(BIN)/python -m tests.helpers.agreement

fuzz: $(VENV)/.ready ## 200,000 hostile, broken and extreme inputs, and 500 killed runs
	$(BIN)/python -m tests.fuzz
	$(BIN)/python -m tests.fuzz.kills

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
