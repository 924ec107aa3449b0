# Metnos. `make run` and `make test` need only Python 3.11 or later, git and make.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; \
	done)
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
PIP := $(PY) -m pip --disable-pip-version-check --no-input
METNOS := $(BIN)/metnos
# Facts about the settings, as exit statuses.
NEEDS_MODEL := $(PY) -c 'from core.config import load_settings as s; from core.llm.tiers import needs_bundled as n; raise SystemExit(not n(s()))'
HAS_TOKEN := $(PY) -c 'from core.config import load_settings as s; raise SystemExit(s().telegram_bot_token is None)'

# Two workers more than there are cores, each with whole files: many tests wait rather than count.
WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1); echo $$((n < 2 ? n + 1 : 4)))
# A worker that dies fails the run at once: replaced, its files would be waited for without end.
TOGETHER ?= -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0

.DEFAULT_GOAL := help
.PHONY: help venv run test test-all lint format types lock digests bench clean

help: ## say what can be made
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|' 2>/dev/null || \
		sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1  \2/p' $(MAKEFILE_LIST)

venv: $(VENV)/.stamp-dev ## make the environment for development

# Every step but the last has its input closed: what is piped into `make run` is for Metnos.
run: $(VENV)/.stamp-run ## run the bot when a token is set, else talk in this terminal
	@if $(NEEDS_MODEL) </dev/null 2>/dev/null; then \
		$(MAKE) --no-print-directory -s $(VENV)/.stamp-local </dev/null >&2 || \
			echo "The bundled model cannot run on this machine; set METNOS_LLM_BASE_URL to use another." >&2; \
	fi
	@# Status 1: an executor was refused and said so; the rest works.
	@$(METNOS) setup --non-interactive --brief </dev/null >&2 || test $$? -eq 1
	@$(METNOS) model pull --if-needed </dev/null >&2 || true
	@if $(HAS_TOKEN) </dev/null; then exec $(METNOS) run; else exec $(METNOS) chat; fi

test: $(VENV)/.stamp-dev ## check format, lint, types, digests, and run the tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(PY) -m core.catalog.digests --check
	$(PY) -m pytest $(TOGETHER)

test-all: $(VENV)/.stamp-dev $(VENV)/.stamp-local ## also what needs the real model, system packages or long
	$(PY) -m pytest -m ""

lint: $(VENV)/.stamp-dev ## check style
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

format: $(VENV)/.stamp-dev ## put the code into its form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.stamp-dev ## check types
	$(BIN)/mypy

lock: $(VENV)/.stamp-dev ## renew the locks below requirements/
	$(BIN)/uv pip compile pyproject.toml --universal --generate-hashes --no-emit-index-url --no-header -o requirements/base.txt
	for extra in dev local embed; do \
		$(BIN)/uv pip compile pyproject.toml --extra $$extra --universal --generate-hashes --no-emit-index-url --no-header -o requirements/$$extra.txt || exit 1; \
	done
	$(BIN)/uv pip compile requirements/build.in --universal --generate-hashes --no-emit-index-url --no-header -o requirements/build.txt
	! grep -nE 'https?://' requirements/*.txt

digests: $(VENV)/.stamp-dev ## renew [files] of the executors and executors/DIGESTS
	$(PY) -m core.catalog.digests

bench: $(VENV)/.stamp-dev ## print the figures of the benchmarks as JSON
	$(PY) -m tests.bench

clean: ## remove the environment and what tools left
	rm -rf $(VENV) dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# -- the environment: a stamp a step, so that the next time it costs nothing ----------------------

$(VENV)/.stamp-venv:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed; name it with make PYTHON=…" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) </dev/null || \
		{ echo "$(PYTHON) cannot make environments: install its venv package (python3-venv)." >&2; exit 1; }
	@touch $@

$(VENV)/.stamp-run: $(VENV)/.stamp-venv requirements/base.txt requirements/build.txt pyproject.toml
	@echo "Installing what Metnos needs (the first time it takes a minute)…" >&2
	@$(PIP) install -qq --require-hashes -r requirements/base.txt -r requirements/build.txt </dev/null >&2
	@$(PIP) install -qq --no-deps --no-build-isolation -e . </dev/null >&2
	@touch $@

$(VENV)/.stamp-local: $(VENV)/.stamp-venv requirements/local.txt
	@$(PIP) install -qq --require-hashes --only-binary :all: -r requirements/local.txt </dev/null >&2
	@touch $@

$(VENV)/.stamp-dev: $(VENV)/.stamp-venv requirements/dev.txt pyproject.toml
	@# The lock names all there is to install; --no-deps: see [tool.uv] in pyproject.toml.
	$(PIP) install -qq --no-deps --require-hashes -r requirements/dev.txt </dev/null
	$(PIP) install -qq --no-deps --no-build-isolation -e . </dev/null
	@touch $@
