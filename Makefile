# The commands of the project. Each does its own set-up in .venv/; nothing system-wide is touched.
#
#   make demo [FILE=path]   two cards carry a file by light
#   make test [ARGS=...]    everything that needs no peer from outside
#   make help               the rest

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
SOURCES := daemon cli sdk
ARGS ?=
JOBS ?= 2
export PYTHONDONTWRITEBYTECODE ?=

.DEFAULT_GOAL := help
.PHONY: help demo test test-system bench sim history check format proto golden reference dashboards monitoring pictures clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1|/' | column -t -s '|'

# ---- set-up: a stamp per set of packages, renewed when what makes them changes ------------------

SETUP := pyproject.toml tools/venv.sh tools/hatch_build.py daemon/accelhw/device/native.c

$(VENV)/.run: $(SETUP)
	@tools/venv.sh $(VENV) run
	@touch $@

$(VENV)/.dev: $(SETUP)
	@tools/venv.sh $(VENV) dev
	@touch $(VENV)/.run $@

# ---- to see it work ----------------------------------------------------------------------------

demo: $(VENV)/.run ## two cards train a link and carry a file by light (FILE=path takes yours)
	@$(BIN)/acceld demo $(if $(FILE),--file "$(FILE)") $(ARGS)

# ---- to know that it works ---------------------------------------------------------------------

test: $(VENV)/.dev ## all tests that need no peer from outside
	@tools/in-namespace.sh $(BIN)/python -m pytest -m "not system" -n $(JOBS) --dist worksteal $(ARGS)

test-system: $(VENV)/.dev ## tests with Prometheus and a booted systemd (root: Debian packages are installed)
	@tests/system/install.sh $(VENV)
	@tools/in-namespace.sh $(BIN)/python -m pytest -m system $(ARGS)

bench: $(VENV)/.dev ## questions of speed beside their peers (ONLY=rpc,start; FULL=1); build/bench.json and .svg
	@tools/in-namespace.sh $(BIN)/python tools/bench.py $(if $(ONLY),--only "$(ONLY)") $(if $(FULL),--full) $(ARGS)

sim: $(VENV)/.dev ## replay one simulated run: make sim SEED=7
	@$(BIN)/python -m accelhw.sim --seed $(or $(SEED),1) $(ARGS)

history: $(VENV)/.dev ## backfill a simulated past into Prometheus: make history SCENARIO=file.toml
	@$(BIN)/python tools/history.py $(or $(SCENARIO),examples/scenarios/laser_month.toml) $(ARGS)

check: $(VENV)/.dev ## format, lint, types, layers, proto
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(SOURCES)
	$(BIN)/buf lint proto
	$(BIN)/buf format --diff --exit-code proto
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/test_layers.py tests/test_style.py tests/test_proto_generated.py

# ---- to change it ------------------------------------------------------------------------------

format: $(VENV)/.dev ## format everything in place
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/buf format --write proto

proto: $(VENV)/.dev ## make sdk/accel/v1/ from proto/
	$(BIN)/python tools/proto.py sdk

golden: $(VENV)/.dev ## rewrite tests/golden/; the diff is the review
	@tools/in-namespace.sh $(BIN)/python -m pytest -q -m "not system" --golden tests $(ARGS)

reference: $(VENV)/.dev ## make docs/reference/, docs/alerts.md and docs/path-comparison.md from the code
	$(BIN)/python tools/fault_reference.py docs/reference/faults.md
	$(BIN)/python tools/health_reference.py docs/reference/health.md
	$(BIN)/python tools/event_reference.py systemd/accel.catalog docs/reference/events.md
	$(BIN)/python tools/metric_reference.py docs/reference/metrics.md
	$(BIN)/python tools/alert_reference.py docs/alerts.md
	$(BIN)/python tools/path_comparison.py docs/path-comparison.md

dashboards: $(VENV)/.dev ## make monitoring/dashboards/*.json
	PYTHONPATH=monitoring $(BIN)/python -m boards monitoring/dashboards

monitoring: ## make build/monitoring/, to install: RUNBOOKS=https://wiki.example.com/acceld
	@python3 tools/monitoring.py --runbooks "$(RUNBOOKS)" build/monitoring

pictures: $(VENV)/.dev ## make docs/boards/*.png: every board, over a rack that something happens to
	@PYTHONPATH=monitoring tools/in-namespace.sh $(BIN)/python -m pictures docs/boards

clean: ## remove what was made here
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
