"""Row 60: a migration of a table that is in use lets the service read on."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tests.patience import PATIENCE_S, wait_until
from tests.reliability.clients.writer import Writer
from tests.reliability.fixtures import Tell
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import Installation, Process, logged, tied

# Back from the one to the other, an index goes, for which nobody may use its table; none after it is undone.
APP, LAST, BACK = "signals_feed", "0008_feed_of_a_publisher", "0007_scorecards"
READS_FOR_S = 30.0
IN_USE = "is in use"
pytestmark = pytest.mark.row("60", "no failed request, no stall longer than 2 s")


@pytest.fixture
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    directory = tmp_path_factory.mktemp("migrating")
    database = PrivatePostgres(directory)
    with database.running():
        yield Installation(directory, database.url)


@pytest.fixture
def key(installation: Installation) -> str:
    return installation.make_key(requests_per_minute=1_000_000)


@contextmanager
def long_reader(url: str) -> Iterator[None]:
    """A report that takes its time."""
    with psycopg.connect(url) as connection:
        connection.execute("SELECT count(*) FROM signals_feed_signal")
        yield


class Asking(Writer):
    def __init__(self, server: Process, key: str) -> None:
        self._server, self._key = server, key
        self.seen: Counter[int] = Counter()
        self.longest_s = 0.0

    def turn(self) -> None:
        self.has_ended.wait(0.02)
        began_at = time.monotonic()
        self.seen[self._server.ask("/api/signals?status=closed", self._key).status_code] += 1
        self.longest_s = max(self.longest_s, time.monotonic() - began_at)


@contextmanager
def migrating(installation: Installation, *changes: tuple[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    assert installation.manage("migrate", "--fake", APP, LAST).returncode == 0
    command, log = tied("manage.py", "migrate", APP, BACK), installation.directory / "migrate.log"
    with logged(command, log, installation.environment(**dict(changes))) as process:
        yield process


def said(installation: Installation) -> str:
    return (installation.directory / "migrate.log").read_text()


def test_a_waiting_migration_lets_others_read(installation: Installation, key: str, tell: Tell) -> None:
    with installation.serve(1) as (server,), Asking(server, key) as asking:
        with long_reader(installation.database_url), migrating(installation) as process:
            wait_until(lambda: IN_USE in said(installation))
            before = asking.seen.total()
            # Still held: only who is let pass can be answered.
            wait_until(lambda: asking.seen.total() > before)
            time.sleep(READS_FOR_S)
            answered = asking.seen.total() - before
            assert process.poll() is None
        with migrating(installation) as process:
            assert process.wait(PATIENCE_S) == 0
    tell(f"{dict(asking.seen)}, {answered} of them while it waited; longest {asking.longest_s:.1f} s")
    assert set(asking.seen) == {200}


def test_control_a_migration_that_never_gives_up_blocks_everyone(
    installation: Installation, key: str, tell: Tell
) -> None:
    patient = ("MIGRATION_LOCK_MS", "0")
    with (
        installation.serve(1) as (server,),
        Asking(server, key) as asking,
        long_reader(installation.database_url),
        migrating(installation, patient),
    ):
        wait_until(lambda: waits_for_lock(installation))
        began = asking.seen[200]
        time.sleep(READS_FOR_S)
        answered = asking.seen[200] - began
    tell(f"without giving up: {answered} answered in {READS_FOR_S:.0f} s")
    assert answered <= 1


def waits_for_lock(installation: Installation) -> bool:
    with psycopg.connect(installation.database_url) as connection:
        waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'signals_feed_signal'::regclass"
        return connection.execute(f"{waiting} AND mode = 'AccessExclusiveLock'").fetchone() is not None
