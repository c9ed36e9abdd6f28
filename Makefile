# Tickwire. `make run` starts it, `make test` shows that it works; `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Each process that a test starts would otherwise compile everything again.
unexport PYTHONDONTWRITEBYTECODE

LONG := archive/exporting/test_elsewhere.py archive/test_killed.py newcomer clients benchmarks deploy demo/runs demo/test_signals.py packages tools programs/test_services.py \
    core/redis core/test_freezing.py $(addprefix accounts/keys/test_,asking_at_once.py key_commands.py) $(addprefix accounts/open_streams/test_,faults.py processes.py) accounts/back_office/test_long_lists.py \
    $(addprefix config/test_,command_line.py environment.py faults.py full_disk.py hsts.py imports.py installation.py unsafe_start.py) \
    contract/openapi/test_schemathesis.py contract/openapi/test_refusals.py accounts/login/test_second_factor.py contract/streams/test_nothing_left.py contract/test_hostile_text.py \
    market/bus/test_replica.py market/feeds/test_demo_feed.py market/importing/test_real_processes.py $(addprefix market/management/test_,engine_health.py run_engine.py) \
    market/feeds/test_venue_to_engine.py market/push/test_push_queue.py market/simulated market/test_simulated_past.py market/bus/test_nothing_kept.py $(addprefix market/store/test_,lease.py lease_vanished.py) house/settings/test_table.py news/ingest/test_parsing_process.py news/sentiment/test_score_headlines.py pages/documents/test_samples.py \
    operations/copying $(addprefix operations/doctor/test_,command.py proxy.py) serving/http/test_deadlines.py $(addprefix serving/test_,both_servers.py interrupted_workers.py) serving/metrics/test_several_workers.py
SCALED := archive contract accounts core market signals_feed news analysis config/back_office demo instruments
# What writes in transactions, asks within them, and waits for what others write.
POOLED := signals_feed/publishing contract/signals contract/callers accounts/limits/test_ai_calls.py core/events
# What brings its own servers, or needs none, is the same whichever database the settings name; one counts what SQLite wrote.
APART := archive/test_killed.py config/back_office/test_roles.py core/redis accounts/limits/test_redis_window.py accounts/open_streams accounts/keys/test_key_commands.py \
    contract/test_stock_handler.py demo/runs market/bus market/feeds market/files market/importing/test_real_processes.py \
    market/push/test_push_queue.py market/push/test_restart.py market/simulated market/store/test_candle_* market/store/test_partitions.py market/streams

# Which way answers concerns REST alone. Two files are left out that take long and ask nothing of the ways.
REST := tests/contract $(addprefix --ignore tests/contract/,streams ways openapi/test_schemathesis.py test_hostile_text.py)

.DEFAULT_GOAL := help
.PHONY: help run test test-long test-clients-versions test-scaled test-pooled test-ways test-browser reliability reliability-full drill soak release-check upgrade-check image-check units-check bandit lint format lock bench-rest bench-history bench-engine bench-archive bench-terminal bench-signals bench-streams bench-slots bench-streams-soak bench-growth bench-units mutants walks clean

help: ## List the targets.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

run: $(VENV)/.run ## Serve on 127.0.0.1:8000 with demo data. PORT=8001, DEMO=0.
	@exec $(BIN)/python manage.py serve

test: $(VENV)/.dev ## The fast tests, on SQLite and in memory.
	@echo "The tests that need no server: some 9,000, on SQLite and in memory, which two cores finish in four to seven"
	@echo "minutes. They use ports on loopback and temporary folders only; your data in var/ is left alone."
	@$(BIN)/python -m pytest -n 3 --no-loadscope-reorder $(addprefix --ignore tests/,$(LONG) browser reliability)

test-long: $(VENV)/.dev ## The slow tests: the demo from nothing, servers, commands, clients, simulated days, training.
	@$(BIN)/python -m pytest -n 3 --no-loadscope-reorder $(addprefix tests/,$(LONG))

test-clients-versions: $(VENV)/.dev ## The Python client on the oldest and newest websockets that it claims.
	@$(BIN)/python -m tests.clients.versions

test-scaled: $(VENV)/.dev ## The tests that use a database, on PostgreSQL and Redis.
	@$(BIN)/python -m tests.programs.scaled -m pytest -n 3 --no-loadscope-reorder $(addprefix tests/,$(SCALED)) $(addprefix --ignore-glob=tests/,$(APART))

test-pooled: $(VENV)/.dev ## Some of them, with PgBouncer in front of PostgreSQL.
	@$(BIN)/python -m tests.programs.pooled -m pytest -n 2 --no-loadscope-reorder $(addprefix tests/,$(POOLED))

test-ways: $(VENV)/.dev ## The contract of REST without the short path, and on daphne.
	@REST_ON=ordinary $(BIN)/python -m pytest -n 3 --no-loadscope-reorder $(REST)
	@REST_ON=daphne $(BIN)/python -m pytest -n 3 --no-loadscope-reorder $(REST)

test-browser: $(VENV)/.dev ## The pages, in Chromium.
	@$(BIN)/python -m pytest -n 3 tests/browser

reliability: $(VENV)/.dev ## Crashes, hostile clients, races, in both modes; ends with a scorecard.
	@$(BIN)/python -m pytest -n 3 -q -m "not full" --durations=15 tests/reliability

reliability-full: $(VENV)/.dev ## The same, longer, with everything slow.
	@FULL=1 $(BIN)/python -m pytest -n 2 -q tests/reliability

drill: $(VENV)/.dev ## Break one part after another under load, 13 minutes: a table in docs/reliability.md. ONLY=redis_fails_over.
	@ONLY="$(ONLY)" $(BIN)/python -m tests.reliability.drill

soak: $(VENV)/.dev ## An hour of mixed load, drawn in docs/reliability.md. HOURS=4.
	@HOURS=$(or $(HOURS),1) $(BIN)/python -m tests.reliability.soak

release-check: bandit image-check units-check bench-slots reliability-full soak ## What is too long for .ci/run: before a release.

upgrade-check: $(VENV)/.dev ## From the commit in RELEASE to this code and back, under traffic; reliability-full does it too.
	@FULL=1 $(BIN)/python -m pytest -q tests/reliability/upgrade

image-check: $(VENV)/.dev ## Build the image of deploy/Dockerfile and start it; five minutes, as root.
	@$(BIN)/python -m pytest -q -s tests/deploy/check_image.py

units-check: $(VENV)/.dev ## Install by docs/operate/install.md on a Debian of its own, boot it and its units; five minutes, as root.
	@$(BIN)/python -m pytest -q tests/deploy/check_units.py

# In a place of its own: nothing else here needs it. What is left out ruff knows as S104, S308 and S608, with
# a reason beside each.
bandit: $(VENV)/.bandit ## What may be unsafe in our code, by bandit.
	@$(VENV)/bandit/bin/bandit -q -ll -s B104,B308,B608,B703 -r manage.py tickwire_server \
	    accounts analysis clients core config instruments market news operations signals_feed status demo pages serving

$(VENV)/.bandit:
	@$(PYTHON) -m venv $(VENV)/bandit
	@$(VENV)/bandit/bin/python -m pip install --quiet --disable-pip-version-check bandit==1.9.4
	@touch $@

lint: $(VENV)/.dev ## Format, lint, types, migrations, production settings.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy .
	$(BIN)/python -m tests.house.releases.migrations
	$(BIN)/python -m tests.house.production

format: $(VENV)/.dev ## Let ruff format and fix what it can.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench-rest: $(VENV)/.dev ## REST against Node, Rust, C++ and Python, as ratios.
	@$(BIN)/python -m tests.benchmarks.rest
	@$(BIN)/python -m tests.benchmarks.news_feed

bench-history: $(VENV)/.dev ## A walk through a million bars while candles close, and what ten walks cost quotes.
	@$(BIN)/python -m tests.benchmarks.history

bench-engine: $(VENV)/.dev ## The market engine: ticks a second, stage by stage.
	@$(BIN)/python -m tests.benchmarks.engine

bench-archive: $(VENV)/.dev ## What keeping ticks costs the engine, with and without in turn. ROUNDS=3, SECONDS=10.
	@$(BIN)/python -m tests.benchmarks.archive

bench-signals: $(VENV)/.dev ## Watching and closing signals, from 100 to 100,000 active ones.
	@$(BIN)/python -m tests.benchmarks.signals

bench-streams: $(VENV)/.dev ## The streams against their peers. QUICK=1, ONLY="own sets".
	@$(BIN)/python -m tests.benchmarks.streams

bench-slots: $(VENV)/.dev ## Stream slots told again to a Redis that lost everything. PROCESSES=200, SLOTS=1250.
	@$(BIN)/python -m tests.benchmarks.slots

bench-units: $(VENV)/.dev ## What a request, a tick and a process cost Redis and PostgreSQL: docs/operate/scale.md.
	@$(BIN)/python -m tests.benchmarks.units

bench-growth: $(VENV)/.dev ## What the same costs with more clients, symbols, instruments. ONLY=clients, symbols or instruments.
	@$(BIN)/python -m tests.benchmarks.growth

bench-streams-soak: $(VENV)/.dev ## 10,000 connections for ten minutes. MINUTES=1.
	@$(BIN)/python -m tests.benchmarks.streams.soak

bench-terminal: $(VENV)/.dev ## The terminal page against its floors: live, painted, smooth, small. MINUTES=1.
	@$(BIN)/python -m tests.benchmarks.terminal

lock: $(VENV)/.dev ## Renew the locks: what runs, the same with the archive, and what tests need.
	$(BIN)/uv pip compile pyproject.toml --upgrade --universal --python-version 3.11 \
	    --generate-hashes --no-header --quiet --output-file requirements.lock
	$(BIN)/uv pip compile pyproject.toml --upgrade --extra archive --extra s3 --universal --python-version 3.11 \
	    --generate-hashes --no-header --quiet --constraint requirements.lock --output-file requirements-archive.lock
	$(BIN)/uv pip compile pyproject.toml --upgrade --group dev --group bench --universal --python-version 3.11 \
	    --generate-hashes --no-header --quiet --constraint requirements-archive.lock --output-file requirements-dev.lock

mutants: $(VENV)/.dev ## Plant faults one at a time: which does no test notice? ONLY=id or room, JOBS=2, FAST=1.
	@$(BIN)/python -m tools.mutants --only "$(ONLY)" --jobs $(or $(JOBS),2) $(if $(FAST),--fast)

walks: $(VENV)/.dev ## Through how many modules five walks pass, and whether that is too many. VERBOSE=1 names them.
	@$(BIN)/python -m tests.walks $(if $(VERBOSE),-v)

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
