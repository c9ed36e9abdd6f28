"""Row 74: a backup that is taken while others write holds all that was acknowledged before, and serves."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
from django.db import OperationalError

from accounts.key_text import prefix_of
from accounts.keys.issuing import issue_key
from accounts.models import ApiKey
from market.models import Candle
from tests.factories import NOON, make_account, make_candle, make_instrument
from tests.patience import wait_until
from tests.reliability.fixtures import Tell
from tests.reliability.services.processes import Installation
from tests.signals_feed.published_signals import close_at, make_published

WRITTEN_BEFORE, WRITTEN_AFTER = 30, 10
pytestmark = [
    pytest.mark.usefixtures("rows"),
    pytest.mark.row("74", "nothing acknowledged is missing"),
]


@contextmanager
def writing(installation: Installation) -> Iterator[list[str]]:
    """Keys that were acknowledged, one after the other."""
    acknowledged: list[str] = []
    has_ended = threading.Event()

    def write() -> None:
        with installation.orm():
            while not has_ended.wait(0.005):
                # Refused is not acknowledged: SQLite has one writer at a time.
                with suppress(OperationalError):
                    acknowledged.append(issue_key(make_account(), "test", by="test")[1])

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        yield acknowledged
    finally:
        has_ended.set()
        writer.join()


def check(installation: Installation, restored: Installation, file: Path, tell: Tell) -> None:
    with installation.serve(1), writing(installation) as acknowledged:
        wait_until(lambda: len(acknowledged) >= WRITTEN_BEFORE)
        before, candles_before, began_at = list(acknowledged), candles_in(installation), time.monotonic()
        told(installation.manage("backup", str(file)))
        took_s = time.monotonic() - began_at
        wait_until(lambda: len(acknowledged) >= len(before) + WRITTEN_AFTER)
    # The service folds the minutes into coarser candles when it has time, before the backup or after it.
    candles_after = candles_in(installation)
    assert candles_before
    told(restored.manage("restore", str(file)))
    assert "hold" in told(restored.manage("verify_ledger"))
    with restored.orm():
        stored = set(ApiKey.objects.values_list("prefix", flat=True))
    assert candles_before <= candles_in(restored) <= candles_after
    missing = {prefix_of(key) for key in before} - stored
    tell(f"{len(before)} acknowledged before a backup of {took_s:.1f} s; missing from it: {len(missing)}")
    assert missing == set()
    # Those that came when it was over cannot be in it: the comparison would see what is missing.
    assert not {prefix_of(key) for key in acknowledged} <= stored
    with restored.serve(1) as (server,):
        assert server.ask("/api/limits", before[-1]).status_code == 200


def told(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def candles_in(installation: Installation) -> set[tuple[object, ...]]:
    with installation.orm():
        return set(Candle.objects.values_list())


def fill(installation: Installation) -> None:
    with installation.orm():
        # Of its own: others have filled the shared database too.
        instrument = make_instrument("BACKEDUP")
        for minute in range(500):
            make_candle(instrument, opened_at=NOON + timedelta(minutes=minute))
        close_at(make_published(instrument), Decimal("1.0850"), Decimal("1.0851"))


def test_a_backup_of_sqlite_under_writes_is_complete(
    embedded: Installation, tmp_path: Path, tell: Tell
) -> None:
    fill(embedded)
    restored = Installation(tmp_path, f"sqlite:///{tmp_path / 'restored.sqlite3'}")
    check(embedded, restored, tmp_path / "backup.zip", tell)


def test_a_backup_of_postgresql_under_writes_is_complete(
    scaled: Installation, tmp_path: Path, tell: Tell
) -> None:
    fill(scaled)
    with psycopg.connect(scaled.database_url, autocommit=True) as admin:
        admin.execute("CREATE DATABASE restored")
    address = scaled.database_url.rpartition("/")[0] + "/restored"
    check(scaled, Installation(tmp_path, address, scaled.redis_url), tmp_path / "backup.zip", tell)
