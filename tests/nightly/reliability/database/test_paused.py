"""Row 53: PostgreSQL is paused, killed and started again in quick succession. What was acknowledged is there
in the end. Row 74: a backup that is taken while others write holds all that was acknowledged before, and
serves."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from contextlib import ExitStack
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
from django.db import OperationalError

from accounts.key_text import generate_key, prefix_of
from accounts.keys.issuing import issue_key
from accounts.models import ApiKey
from market.models import Candle
from tests.factories import NOON, make_account, make_candle, make_instrument
from tests.patience import wait_until
from tests.reliability.clients.writer import Writer
from tests.reliability.fixtures import Tell
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import Installation, Process
from tests.signals_feed.published_signals import close_at, make_published

ROUNDS, PAUSE_S = 10, 1.0


class Issuing(Writer):
    """Makes keys, each on an account of its own, and knows those of which it was told that they are there."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self.acknowledged: list[str] = []

    def turn(self) -> None:
        self.has_ended.wait(0.02)
        try:
            with self._installation.orm():
                self.acknowledged.append(issue_key(make_account(), "test", by="test")[1])
        except OperationalError:
            # Refused is not acknowledged.
            return


def missing(installation: Installation, keys: list[str]) -> set[str]:
    with installation.orm(only_reads=True):
        return set(map(prefix_of, keys)) - set(ApiKey.objects.values_list("prefix", flat=True))


@pytest.mark.row("53", "nothing acknowledged lost, no 500")
def test_acknowledged_keys_survive_pauses_and_kills(tmp_path: Path, tell: Tell) -> None:
    database, statuses = PrivatePostgres(tmp_path, is_forgetful=False), Counter[int]()
    installation = Installation(tmp_path, database.url)

    def ask(server: Process) -> int:
        # Well formed and never seen before, so that the database has to be asked.
        status = server.ask("/api/symbols", generate_key()).status_code
        statuses[status] += 1
        return status

    with ExitStack() as running:
        running.enter_context(database.running())
        with installation.serve(1) as (server,), Issuing(installation) as issuing:
            for _ in range(ROUNDS):
                before = len(issuing.acknowledged)
                wait_until(lambda: len(issuing.acknowledged) >= before + 3)  # noqa: B023 - within its turn
                with database.paused():
                    time.sleep(PAUSE_S)
                ask(server)
                running.close()
                ask(server)
                running.enter_context(database.running())
                with database.paused():
                    time.sleep(PAUSE_S / 4)
            issuing.stop()
            wait_until(lambda: ask(server) == 401)
        lost = missing(installation, issuing.acknowledged)
        # The control: a key that is not there is missed.
        assert len(missing(installation, [generate_key()])) == 1
    told = f"{len(issuing.acknowledged)} acknowledged, lost {len(lost)}; requests {dict(statuses)}"
    tell(f"{ROUNDS} times paused, killed, started, paused: {told}")
    assert lost == set()
    assert set(statuses) <= {401, 503}


WRITTEN_BEFORE, WRITTEN_AFTER = 30, 10


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


def restored_of(installation: Installation, directory: Path) -> Installation:
    if not installation.redis_url:
        return Installation(directory, f"sqlite:///{directory / 'restored.sqlite3'}")
    with psycopg.connect(installation.database_url, autocommit=True) as admin:
        admin.execute("CREATE DATABASE restored")
    address = installation.database_url.rpartition("/")[0] + "/restored"
    return Installation(directory, address, installation.redis_url)


@pytest.mark.row("74", "nothing acknowledged is missing")
def test_a_backup_under_writes_is_complete(either: Installation, tmp_path: Path, tell: Tell) -> None:
    fill(either)
    restored, file = restored_of(either, tmp_path), tmp_path / "backup.zip"
    with either.serve(1), Issuing(either) as issuing:
        wait_until(lambda: len(issuing.acknowledged) >= WRITTEN_BEFORE)
        before, candles_before = list(issuing.acknowledged), candles_in(either)
        began_at = time.monotonic()
        told(either.manage("backup", str(file)))
        took_s = time.monotonic() - began_at
        wait_until(lambda: len(issuing.acknowledged) >= len(before) + WRITTEN_AFTER)
    # The service folds the minutes into coarser candles when it has time, before the backup or after it.
    candles_after = candles_in(either)
    assert candles_before
    told(restored.manage("restore", str(file)))
    assert "hold" in told(restored.manage("verify_ledger"))
    assert candles_before <= candles_in(restored) <= candles_after
    lost = missing(restored, before)
    tell(f"{len(before)} acknowledged before a backup of {took_s:.1f} s; missing from it: {len(lost)}")
    assert lost == set()
    # Those that came when it was over cannot be in it: the comparison would see what is missing.
    assert missing(restored, issuing.acknowledged)
    with restored.serve(1) as (server,):
        assert server.ask("/api/limits", before[-1]).status_code == 200
