# Everything a developer or an operator of a laptop runs. Only make, sh and Python 3.11+ are needed.

BIN := .venv/bin
# The stamps are named by the locks' checksums: a changed lock installs again, an unchanged one never.
checksum = $(shell cksum < $(1) | cut -d' ' -f1)
RUNTIME := .venv/.installed-$(call checksum,requirements.lock)
DEV := .venv/.installed-dev-$(call checksum,requirements-dev.lock)
COMPILE := $(BIN)/uv pip compile pyproject.toml --universal --generate-hashes --python-version 3.11 \
	--no-emit-index-url --no-annotate --no-header --quiet
export PYTHON

.DEFAULT_GOAL := help
.PHONY: help run install test lint browser bench chaos lock clean

help:
	@echo "make run    start Dexweb on http://127.0.0.1:$(or $(DEXWEB_PORT),8000)/ (installs what it needs first)"
	@echo "make test   lint, then all tests"
	@echo "make lint   format, style, types, missing migrations"
	@echo "make bench  measure against the budgets"
	@echo "make chaos  kill processes at random, 1,000 times, and check every promise"
	@echo "make lock   write the lock files anew from pyproject.toml"
	@echo "make clean  remove the environment and caches; data in var/ stays"

$(RUNTIME):
	@./install.sh requirements.lock
	@touch $@

# The dev lock holds the runtime one whole.
$(DEV):
	@./install.sh requirements-dev.lock
	@touch $@ $(RUNTIME)

install: $(RUNTIME)

# exec, so that Ctrl-C reaches Dexweb once and it alone says how the stop went.
run: $(RUNTIME)
	@exec $(BIN)/python manage.py up

lint: export DEXWEB_VAR := $(CURDIR)/.venv/lint-var
lint: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python manage.py makemigrations --check --dry-run

browser: $(DEV)
	@$(BIN)/python tests/browser.py

test: lint browser
	$(BIN)/python -m pytest -n 3

bench: $(DEV)
	$(BIN)/python -m pytest -m bench -s tests/bench

# make chaos KILLS=5000 SEED=42
chaos: $(DEV)
	$(BIN)/python -m tests.chaos --kills $(or $(KILLS),1000) $(if $(SEED),--seed $(SEED))

lock: $(DEV)
	$(COMPILE) -o requirements.lock
	$(COMPILE) --group dev -c requirements.lock -o requirements-dev.lock

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
