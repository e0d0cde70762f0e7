# make demo: install and run the main job on the bundled data. make test: run the whole suite.
# make docs: build the site of the pages in site/, which is read from there without a server.
# make catalogue: play every bundled scenario at its own size, with all measures (minutes).
# make crashes: fail at every file operation of a run and a study, read 2,000 strange files (minutes).
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt

.PHONY: demo test docs catalogue crashes clean

demo: .venv/.demo
	$(BIN)/regretless run crop-choice --out runs/crop-choice --overwrite
	$(BIN)/regretless report runs/crop-choice

test: .venv/.test
	$(BIN)/python -m pytest -n auto

docs: .venv/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "The site: site/index.html"

catalogue: .venv/.test
	$(BIN)/python -m pytest -n auto -m catalogue

crashes: .venv/.test
	$(BIN)/python -m pytest -n auto -m crashes -rP -vv

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.demo: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable .
	touch $@

.venv/.test: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable '.[test]'
	touch $@ .venv/.demo

.venv/.docs: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable '.[docs]'
	touch $@ .venv/.demo

clean:
	rm -rf .venv runs site
