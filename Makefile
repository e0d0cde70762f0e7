# make demo: install and run two scenarios on bundled data. make test: linters and the whole suite.
# make check: linters and the quick tests: no page, no browser, nothing that tests/slow.txt names.
# make lint: linters alone. make slow: measure which tests take more than a second (tests/slow.txt).
# make docs: build the site of the pages in site/, which is read from there without a server.
# make catalogue: run every bundled scenario at its own size, with all measures (minutes).
# make crashes: fail at every file operation of a run and a study, kill workers, scheduler and
# conductor of runs that are shared out, and read 2,000 strange files (minutes).
# make coverage: the suite, and which lines and branches of the four packages it runs (90 % at least).
# make wheel: build the wheel, and check that it holds every file of the four packages.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check -qq --constraint constraints.txt
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal

.PHONY: demo test check suite quick slow lint coverage wheel docs catalogue crashes clean

demo: .venv/.demo
	$(BIN)/regretless run crop-choice --out runs/crop-choice --overwrite
	$(BIN)/regretless report runs/crop-choice
	$(BIN)/regretless run two-sellers --out runs/two-sellers --overwrite

test: .venv/.test  # linters, of one process, beside the tests
	@$(MAKE) --no-print-directory --jobs 2 lint suite

check: .venv/.test
	@$(MAKE) --no-print-directory --jobs 2 lint quick

suite: .venv/.test
	$(PYTEST) $(COUNTED)

quick: .venv/.test
	$(PYTEST) -m 'not catalogue and not crashes and not pages and not browser and not slow'

lint: .venv/.test
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m codespell_lib
	$(BIN)/python -m mypy

slow: .venv/.test
	$(BIN)/python -m pytest -n 0 --durations=0 --durations-min=.02 | awk \
	  '/s (call|setup) +tests\// { split($$3, at, "["); took[at[1]] += $$1 } \
	  END { for (t in took) if (took[t] > 1) print t }' | sort > tests/slow.new
	mv tests/slow.new tests/slow.txt

wheel: .venv/.test
	rm -rf dist
	$(BIN)/python -m pip wheel --disable-pip-version-check -qq --no-deps --wheel-dir dist .
	$(BIN)/python tests/wheel_files.py dist/*.whl

coverage:
	$(MAKE) test COUNTED='--cov --cov-report=term:skip-covered'

docs: .venv/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "The site: site/index.html"

catalogue: .venv/.test
	$(PYTEST) -m catalogue

crashes: .venv/.test
	$(PYTEST) -m crashes -v -rfE --show-capture=no

# Groups of dependencies are known to pip 25.1 and newer.
.venv/.pip: constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) 'pip>=25.1'
	touch $@

.venv/.demo: pyproject.toml .venv/.pip
	@echo "Installing into .venv; this takes about a minute."
	$(PIP) --editable '.[live]'
	touch $@

.venv/.test: pyproject.toml .venv/.pip
	$(PIP) --editable . --group test
	touch $@ .venv/.demo

.venv/.docs: pyproject.toml .venv/.pip
	$(PIP) --editable . --group docs
	touch $@ .venv/.demo

clean:
	rm -rf .venv dist runs site
