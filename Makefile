# The one way to build, test and measure limpet; needs Python >= 3.11, make and a package index.
PYTHON ?= python3
UV_VERSION := 0.13.8
BIN := .venv/bin
STAMP := .venv/.synced
# uv may only ever work on this checkout's environment, with the interpreter that made it.
export UV_PROJECT_ENVIRONMENT := $(CURDIR)/.venv
export UV_PYTHON_DOWNLOADS := never
# the machine's own certificates, where it has any: uv's built-in ones know no local authority
ifneq ($(wildcard /etc/ssl/certs/ca-certificates.crt),)
export UV_SYSTEM_CERTS ?= true
endif

.PHONY: env test check lint demo bench bench-peers fuzz prove lock clean

env: $(STAMP)

$(BIN)/uv: Makefile
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'limpet needs Python >= 3.11; set PYTHON=' >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv==$(UV_VERSION)'
	@touch $@

$(STAMP): $(BIN)/uv pyproject.toml uv.lock
	$(BIN)/uv sync --locked --inexact --quiet
	@touch $@

# Most tests wait for processes: two files at a time take half as long.
test: env
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

check: lint test

demo: env
	./demo/run.sh

bench: env
	$(BIN)/python -m bench

bench-peers: env
	$(BIN)/python -m bench S2 S4 S6 S7 GROW --peers

fuzz: env
	$(BIN)/python -m fuzz

prove: env
	$(BIN)/python -m prove

lock: $(BIN)/uv
	$(BIN)/uv lock
	$(MAKE) env

clean:
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
