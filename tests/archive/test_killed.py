"""kill -9 at any point: no half file, and no tick is missing that a stored candle counts."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from archive.folding.fold import fold_what_is_due
from archive.journal import HeardRecords, TickJournal
from archive.manifests import parse
from archive.proving import verify_day
from archive.stores import DiskStore
from core.times import MINUTE_MS
from market.prices.records import TickAccepted
from tests.databases import prepared
from tests.patience import START_PATIENCE_S, wait_until
from tests.reliability.conftest import rows  # noqa: F401 - a fixture
from tests.reliability.services.engines import NEVER_CLOSING, killed_after, make_publisher, stored, written
from tests.reliability.services.processes import ROOT, Installation

pytestmark = pytest.mark.served

SEED, SYMBOL = 20_261_124, "KEPT"
LEAST_POINTS = 50


def test_folding_killed_at_each_of_its_steps_is_done_again(tmp_path: Path) -> None:
    database = tmp_path / "db.sqlite3"
    prepared.copy_sqlite(database)
    environment = os.environ | {"DATABASE_URL": f"sqlite:///{database}", "VAR_DIR": str(tmp_path / "own")}
    environment |= {"REDIS_URL": "", "DEMO": "0", "DJANGO_SETTINGS_MODULE": "config.settings"}
    command = [sys.executable, "-m", "tests.archive.killed_folding", str(tmp_path)]
    ran = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=6 * START_PATIENCE_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads(ran.stdout)
    assert (found["bad"], found["differ"]) == ([], [])
    assert found["kills"] >= LEAST_POINTS
    assert found["files"] == 6


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    path = tmp_path / "embedded.sqlite3"
    prepared.copy_sqlite(path)
    return Installation(tmp_path, f"sqlite:///{path}")


def kept_seqs(folder: Path) -> set[int]:
    frames = [frame for segment in TickJournal(folder / "ticks").segments() for frame in segment.frames()]
    records = [record for frame in frames if isinstance(frame, HeardRecords) for record in frame.records]
    return {record.seq for record in records if isinstance(record, TickAccepted)}


def keep_killing(installation: Installation, rounds: int) -> None:
    publisher, draw = make_publisher(installation, SYMBOL, SEED), random.Random(SEED)  # noqa: S311
    for _ in range(rounds):
        with installation.serve(1, **NEVER_CLOSING, ARCHIVE="1") as (server,):
            publisher.recover(server.url)
            with killed_after(draw.uniform(0.1, 1.6), server.pid):
                publisher.send_until_it_breaks(server.url)
        known = stored(installation, SYMBOL).seq
        assert set(range(1, known + 1)) <= kept_seqs(installation.directory)
    with installation.serve(1, **NEVER_CLOSING, ARCHIVE="1") as (server,):
        publisher.recover(server.url)
        written(installation, SYMBOL, publisher.ticks)
    with installation.serve(1, ARCHIVE="1"):
        # Its clock closes the last minute.
        last_ms = publisher.ticks[-1].time_ms // MINUTE_MS * MINUTE_MS
        wait_until(lambda: ("1m", last_ms) in stored(installation, SYMBOL).rows)
    with installation.orm():
        store = DiskStore(installation.directory / "archive")
        fold_what_is_due(
            TickJournal(installation.directory / "ticks"), store, datetime.now(UTC) + timedelta(days=1), 0
        )
        days = sorted(parse(path).day for path in store.listing("manifests/"))
        verdicts = [verify_day(store, day) for day in days]
    assert [verdict.faults for verdict in verdicts] == [[]] * len(days)
    assert sum(verdict.counts["ticks"] for verdict in verdicts) == len(publisher.ticks)
    assert sum(verdict.counts["minutes"] for verdict in verdicts) > 0


@pytest.mark.usefixtures("rows")
def test_a_killed_server_keeps_each_tick_that_the_database_knows(installation: Installation) -> None:
    keep_killing(installation, 2)
