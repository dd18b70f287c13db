# The two commands of the README are `make demo` and `make test`; both set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LINKS := .links/moeagent

.PHONY: demo demo-real dev test lint types bench soak docs clean

$(STAMP): pyproject.toml requirements-dev.lock
	$(PYTHON) -c 'import sys; sys.exit("moeagent needs Python 3.11 or newer; run make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $(STAMP)

$(LINKS):
	mkdir -p $(LINKS)
	for folder in agent tools memory prompts; do ln -sfn ../../$$folder $(LINKS)/$$folder; done

dev: $(STAMP) $(LINKS)
