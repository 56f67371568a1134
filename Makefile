# Each target sets itself up: nothing but python3 and make is needed.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-oldest lint format bench bench-gpu experiments experiments-quick docs dist clean

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

# One stamp a set of extras: installed again only when pyproject.toml changes.
.venv/.demo: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet -e '.[plot]'
	@touch $@

.venv/.test: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet -e '.[test]'
	@touch $@

.venv/.lint: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet -e '.[lint]'
	@touch $@

.venv/.bench: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet -e '.[bench]'
	@touch $@

.venv/.experiments: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet -e '.[experiments]'
	@touch $@

.venv/.docs: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet -e '.[docs]'
	@touch $@

demo: .venv/.demo  ## decompose a perturbed tensor, print a table, draw its spectrum
	$(BIN)/quartic demo --out out

# A process a core, a thread each: the problems of the tests are small, and threads would only wait for each other.
test: export OMP_NUM_THREADS = 1
test: export OPENBLAS_NUM_THREADS = 1
test: .venv/.test  ## all tests; with COVERAGE=1 also what they cover, in half as much time again
	$(BIN)/python -m pytest -n auto $(if $(COVERAGE),--cov --cov-report=term)

.venv-oldest/.ready: pyproject.toml tests/oldest.txt
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet -c tests/oldest.txt -e '.[all]' pytest pytest-xdist hypothesis \
		array-api-strict pandas
	@touch $@

# Benchmarks and experiments run peers, which need newer versions; what needs an extra is skipped where it is missing.
test-oldest: export OMP_NUM_THREADS = 1
test-oldest: export OPENBLAS_NUM_THREADS = 1
test-oldest: .venv-oldest/.ready  ## the tests of the library with the oldest supported versions
	.venv-oldest/bin/python -m pytest -n auto --ignore=tests/test_benchmarks.py --ignore=tests/test_experiments.py

lint: .venv/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.bench  ## the benchmark: all solvers on all problems; results are kept as data, and benchmarks/RESULTS.md
	$(BIN)/python -m benchmarks dense samples overcomplete scaling

bench-gpu: .venv/.bench  ## the figures on whatever CUDA device is there, with the PyTorch that is installed
	$(BIN)/python -m benchmarks.must_show.gpu

experiments: .venv/.experiments  ## the paper's claims, measured: tables, figures, docs/experiments.md
	$(BIN)/python -m experiments

experiments-quick: .venv/.experiments  ## tiny versions of them, in three minutes
	$(BIN)/python -m experiments --quick --out out/experiments

.venv/.dist: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet build
	@touch $@

dist: .venv/.dist  ## wheel and source distribution, the same bytes for the same commit
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build --outdir dist

docs: .venv/.docs  ## the documentation site, in out/docs/index.html; a warning is an error
	$(BIN)/python -m sphinx -W --keep-going -b html docs out/docs

clean:
	rm -rf .venv .venv-oldest out build dist .pytest_cache .mypy_cache .ruff_cache .coverage htmlcov
