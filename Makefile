# Tickwire. `make run` starts it, `make test` shows that it works; `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -n 3 --no-loadscope-reorder

# Each process that a test starts would otherwise compile everything again.
unexport PYTHONDONTWRITEBYTECODE

# Everything outside these three runs after each change; what starts servers or takes seconds is marked so, and left to `check`.
APART := $(addprefix --ignore tests/,browser reliability nightly)
# Which way answers concerns REST alone. Two files are left out that take long and ask nothing of the ways.
REST := tests/contract $(addprefix --ignore tests/contract/,streams ways test_hostile_text.py)
# The files with a mark: to collect all others takes each process ten seconds.
MARKED = $$(grep -rl --include='test_*.py' $(addprefix --exclude-dir=,browser reliability nightly) 'mark\.$(1)\b' tests | sort)
CHECK := lint test test-served test-services test-browser reliability

.DEFAULT_GOAL := help
.PHONY: $(shell sed -nE 's/^([a-z-]+):.*\#\# .*/\1/p' $(firstword $(MAKEFILE_LIST)))

help: ## List the targets.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 24

run: $(VENV)/.run ## Serve on 127.0.0.1:8000 with demo data. PORT=8001, DEMO=0.
	@exec $(BIN)/python manage.py serve

test: $(VENV)/.dev ## The tests that are fast and need no server, on SQLite and in memory: what to run after each change.
	@echo "The tests that need no server, on SQLite and in memory: two to three minutes on two cores. They use ports on"
	@echo "loopback and temporary folders only; your data in var/ is left alone."
	@$(PYTEST) -m "not served" tests $(APART)

check: $(VENV)/.dev ## What every change must pass, as .ci/run runs it: twenty minutes on two cores.
	@for each in $(CHECK); do began=$$(date +%s); $(MAKE) --no-print-directory $$each || exit; \
	    echo "make $$each took $$(( $$(date +%s) - began )) s"; done

nightly: $(VENV)/.dev ## What takes long or judges speed, into docs/nightly.md. PART=3, or all parts one after the other.
	@$(BIN)/python -m tools.nightly $(PART)

test-served: $(VENV)/.dev ## The tests that start servers, commands, clients.
	@$(PYTEST) -m served $(call MARKED,served)

test-services: $(VENV)/.dev ## What depends on SQL or Redis, on PostgreSQL and Redis; some of it with PgBouncer between.
	@$(BIN)/python -m tests.programs.scaled -m pytest -n 3 --no-loadscope-reorder -m services $(call MARKED,services)
	@$(BIN)/python -m tests.programs.pooled -m pytest -n 3 --no-loadscope-reorder -m pooled $(call MARKED,pooled)

test-browser: $(VENV)/.dev ## The pages, in Chromium and Firefox.
	@$(PYTEST) tests/browser

reliability: $(VENV)/.dev ## Crashes, hostile clients, races, in both modes, by what comes and in which order.
	@$(PYTEST) -q --durations=15 tests/reliability

shake: $(VENV)/.dev ## Tests that start processes or wait, 30 times beside four busy processes. ONLY=path, TIMES=3.
	@$(BIN)/python -m tools.shake

test-clients-versions: $(VENV)/.dev ## The Python client on the oldest and newest websockets that it claims.
	@$(BIN)/python -m tests.nightly.clients.versions

test-ways: $(VENV)/.dev ## The contract of REST without the short path, and on daphne.
	@REST_ON=ordinary $(PYTEST) $(REST)
	@REST_ON=daphne $(PYTEST) $(REST)

drill: $(VENV)/.dev ## Break one part after another under load, 13 minutes: a table in docs/reliability.md. ONLY=redis_fails_over.
	@ONLY="$(ONLY)" $(BIN)/python -m tests.nightly.reliability.drill

soak: $(VENV)/.dev ## An hour of mixed load, drawn in docs/reliability.md. HOURS=4.
	@HOURS=$(or $(HOURS),1) $(BIN)/python -m tests.nightly.reliability.soak

upgrade-check: $(VENV)/.dev ## From the commit in RELEASE to this code and back, under traffic.
	@$(BIN)/python -m pytest -q tests/nightly/reliability/upgrade

image-check: $(VENV)/.dev ## Build the image of deploy/Dockerfile and start it; five minutes, as root.
	@$(BIN)/python -m pytest -q -s tests/nightly/deploy/check_image.py

units-check: $(VENV)/.dev ## Install by docs/operate/install.md on a Debian of its own, boot it and its units; five minutes, as root.
	@$(BIN)/python -m pytest -q tests/nightly/deploy/check_units.py

# In a place of its own: nothing else here needs it. What is left out ruff knows as S102, S104, S308 and S608, with
# a reason beside each.
bandit: $(VENV)/.bandit ## What may be unsafe in our code, by bandit.
	@$(VENV)/bandit/bin/bandit -q -ll -s B102,B104,B308,B608,B703 -r manage.py tickwire_server \
	    accounts analysis clients core config instruments market news operations signals_feed status demo pages serving transparency

$(VENV)/.bandit:
	@$(PYTHON) -m venv $(VENV)/bandit
	@$(VENV)/bandit/bin/python -m pip install --quiet --disable-pip-version-check bandit==1.9.4
	@touch $@

lint: $(VENV)/.dev ## Format, lint, types, structure, migrations, production settings.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy .
	$(BIN)/python -m tools.lint
	$(BIN)/python -m tools.lint.elapsed
	$(BIN)/python -m tools.lint.migrations
	$(BIN)/python -m tools.lint.production

format: $(VENV)/.dev ## Let ruff format and fix what it can.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench-rest: $(VENV)/.dev ## REST against Node, Rust, C++ and Python, as ratios.
	@$(BIN)/python -m tests.nightly.benchmarks.rest

bench-history: $(VENV)/.dev ## A walk through a million bars while candles close, and what ten walks cost quotes.
	@$(BIN)/python -m tests.nightly.benchmarks.history

bench-engine: $(VENV)/.dev ## The market engine: ticks a second, stage by stage.
	@$(BIN)/python -m tests.nightly.benchmarks.engine

bench-archive: $(VENV)/.dev ## What keeping ticks costs the engine, with and without in turn. ROUNDS=3, SECONDS=10.
	@$(BIN)/python -m tests.nightly.benchmarks.archive

bench-signals: $(VENV)/.dev ## Watching and closing signals, from 100 to 100,000 active ones.
	@$(BIN)/python -m tests.nightly.benchmarks.signals

bench-streams: $(VENV)/.dev ## The streams against their peers. QUICK=1, ONLY="own sets".
	@$(BIN)/python -m tests.nightly.benchmarks.streams

bench-slots: $(VENV)/.dev ## Stream slots told again to a Redis that lost everything. PROCESSES=200, SLOTS=1250.
	@$(BIN)/python -m tests.nightly.benchmarks.slots

bench-units: $(VENV)/.dev ## What a request, a tick and a process cost Redis and PostgreSQL: docs/operate/scale.md.
	@$(BIN)/python -m tests.nightly.benchmarks.units

bench-growth: $(VENV)/.dev ## What the same costs with more clients, symbols, instruments. ONLY=clients, symbols or instruments.
	@$(BIN)/python -m tests.nightly.benchmarks.growth

bench-streams-soak: $(VENV)/.dev ## 10,000 connections for ten minutes. MINUTES=1.
	@$(BIN)/python -m tests.nightly.benchmarks.streams.soak

bench-terminal: $(VENV)/.dev ## The terminal page against its floors: live, painted, smooth, small. MINUTES=1.
	@$(BIN)/python -m tests.nightly.benchmarks.terminal

lock: $(VENV)/.dev ## Renew the locks: what runs, the same with the archive, and what tests need.
	$(BIN)/uv pip compile pyproject.toml --upgrade --universal --python-version 3.11 \
	    --generate-hashes --no-header --quiet --output-file requirements.lock
	$(BIN)/uv pip compile pyproject.toml --upgrade --extra archive --extra s3 --universal --python-version 3.11 \
	    --generate-hashes --no-header --quiet --constraint requirements.lock --output-file requirements-archive.lock
	$(BIN)/uv pip compile pyproject.toml --upgrade --group dev --group bench --universal --python-version 3.11 \
	    --generate-hashes --no-header --quiet --constraint requirements-archive.lock --output-file requirements-dev.lock

# What a release consists of. The list of parts has the hashes of the lock.
DIST := dist
packages: $(VENV)/.dev ## Build what a release publishes, with a list of its parts (SBOM), into dist/. Needs Node.
	@rm -rf "$(DIST)"
	@$(BIN)/uv build --quiet --out-dir "$(DIST)/server" .
	@$(BIN)/uv build --quiet --out-dir "$(DIST)/client" clients/python
	@cd clients/typescript && npm ci --silent --ignore-scripts --no-audit --no-fund --loglevel=error && npm run --silent build
	@npm pack --silent --pack-destination "$(DIST)" ./clients/typescript
	@PYTHONWARNINGS=ignore $(BIN)/uv tool run --quiet --from cyclonedx-bom==7.5.0 cyclonedx-py requirements requirements.lock \
	    --pyproject pyproject.toml --output-reproducible --output-file "$(DIST)/sbom.json"

mutants: $(VENV)/.dev ## Plant faults one at a time: which does no test notice? ONLY=id or room, JOBS=2, FAST=1.
	@$(BIN)/python -m tools.mutants --only "$(ONLY)" --jobs $(or $(JOBS),2) $(if $(FAST),--fast)

walks: $(VENV)/.dev ## Through how many modules five walks pass. VERBOSE=1 names them.
	@$(BIN)/python -m tools.walks $(if $(VERBOSE),-v)

clean: ## Remove the virtual environment and caches; var/ with your data stays.
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis

# uv does in seconds what venv and pip do in a minute. Either can go on with what the other began.
UV := $(shell uv --version >/dev/null 2>&1 && echo uv)
MAKE_VENV := $(if $(UV),uv venv --quiet --allow-existing --python "$$(command -v $(PYTHON))",$(PYTHON) -m venv) $(VENV)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	    { echo "Tickwire needs Python 3.11 or newer as $(PYTHON). Install it, or name another: make run PYTHON=python3.11"; exit 1; }
	@echo "Making a virtual environment in $(VENV)"
	@$(MAKE_VENV) || { rm -rf $(VENV); \
	    echo "The virtual environment could not be made: is the disk full, or the package python3-venv missing?"; exit 1; }

# What pip says of a fault is kept, and one line counts the packages; uv shows its own progress.
WITH_UV = uv pip install --quiet --python $(BIN)/python --require-hashes -r $(1)
WITH_PIP = { $(BIN)/python -m ensurepip --default-pip >/dev/null && \
    $(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r $(1) 2>&1 || touch $(VENV)/.failed; } \
    | awk '/^ *Collecting / { printf "\r\033[K  %d  %s", ++n, $$2; fflush() } /^ERROR/ { print "\n" $$0 } END { print "" }'

define install
	@echo "Installing the packages$(if $(UV), with uv) (once; $(if $(UV),seconds,a minute or so))"
	@rm -f $(VENV)/.failed
	@$(if $(UV),$(WITH_UV) || touch $(VENV)/.failed,$(WITH_PIP))
	@test ! -e $(VENV)/.failed || { rm $(VENV)/.failed; echo "The packages could not be installed. Is the package" \
	    "index reachable, and the disk not full? Then try again; it goes on where it stopped."; exit 1; }
	@touch $@
endef

$(VENV)/.run: requirements.lock | $(BIN)/python
	$(call install,requirements.lock)

$(VENV)/.dev: requirements-dev.lock | $(BIN)/python
	$(call install,requirements-dev.lock)
