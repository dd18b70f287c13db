# The two commands of the README are `make demo` and `make test`; both set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LINKS := .links/moeagent
WORKERS ?= auto
MERMAID := docs/_site/vendor/mermaid.min.js

.PHONY: demo demo-real example dev test lint types bench soak docs docs-check site lock clean

$(STAMP): pyproject.toml requirements-dev.lock
	$(PYTHON) -c 'import sys; sys.exit("moeagent needs Python 3.11 or newer: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $(STAMP)

# Type checkers do not see setuptools' package mapping; these links show it to them.
$(LINKS):
	mkdir -p $(LINKS)
	for folder in agent tools memory prompts; do ln -sfn ../../$$folder $(LINKS)/$$folder; done

dev: $(STAMP) $(LINKS)

# The main job on the simulated SM120 machine: no GPU, no key.
demo: dev
	$(BIN)/moeagent run --goal max-throughput --config examples/demo.toml

# The same job on a real llama.cpp server with a tiny model that is made here: no GPU, no key.
demo-real: dev
	$(BIN)/python -m moeagent.tools.engines.tiny_moe runs/tiny-moe.gguf
	$(BIN)/moeagent run --goal max-throughput --config examples/demo-real.toml

# Records the example run anew; needed after a change of the loop's decisions or data.
example: dev
	rm -rf runs/example-sm120
	$(BIN)/moeagent run --goal max-throughput --config examples/example-sm120.toml --run-id example-sm120

test: dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: dev
	$(BIN)/mypy $(LINKS)

bench: dev
	$(BIN)/python -m pytest tests/bench -s --full

soak: dev
	$(BIN)/python -m pytest tests/e2e/test_chaos.py tests/e2e/test_ssh_cuts.py tests/tools/server/test_cut_life.py tests/tools/hosts -s --full
	$(BIN)/python -m pytest tests/soak -s --full

# Writes the generated parts of the documentation, then the site into build/site. docs-check fails when a part is not
# what the code gives, site when a link leads nowhere.
docs: dev
	$(BIN)/python tests/docs/generate.py
	$(MAKE) site

site: dev $(MERMAID)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Draws the site's diagrams. Fetched once, kept with the site: a reader's browser loads nothing from elsewhere.
$(MERMAID):
	mkdir -p $(@D)
	cd $(@D) && npm pack --silent mermaid@11
	tar -xzf $(@D)/mermaid-*.tgz -C $(@D) --strip-components=2 package/dist/mermaid.min.js
	rm $(@D)/mermaid-*.tgz
	touch $@

docs-check: dev
	$(BIN)/python tests/docs/generate.py --check

lock:
	$(BIN)/python -m pip freeze --exclude-editable --exclude moeagent > requirements-dev.lock

clean:
	rm -rf $(VENV) .links build dist *.egg-info
