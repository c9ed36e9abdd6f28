"""Rows 54 and 55 for what people do in pages: what could not be written was never said to be done, what was
said to be done outlives a kill, and prices go on meanwhile."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from accounts.key_text import prefix_of
from accounts.models import ApiKey
from signals_feed.models import Signal
from tests.nightly.reliability.clients.meters import Meter, listening
from tests.patience import wait_until
from tests.programs.debian import require_debian
from tests.reliability.clients.person import Person
from tests.reliability.fixtures import Tell
from tests.reliability.services.frozen import family
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import Flow, StreamService, streaming
from tests.reliability.services.supervised import command_of

INJECTED = re.compile(r"\(INJECTED\)")


class Tracer:
    def __init__(self, log: Path) -> None:
        self._log = log

    @property
    def injected(self) -> int:
        return len(INJECTED.findall(self._log.read_text(errors="replace")))


@contextmanager
def injecting(log: Path, pids: Iterable[int], calls: str, fault: str) -> Iterator[Tracer]:
    """From the moment in which it has all of them, and those that they start."""
    of_whom = [argument for pid in pids for argument in ("-p", str(pid))]
    command = [require_debian("strace"), "-f", *of_whom, "-o", str(log)]
    command += ["-e", f"trace={calls}", "-e", f"inject={calls}:{fault}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for _ in range(len(of_whom) // 2):
            said = process.stderr.readline()
            assert "attached" in said, said
        try:
            yield Tracer(log)
        finally:
            process.terminate()


SYMBOLS, ENTRY = ["WRITTEN"], "1.005"
ATTEMPTS, TICKS_A_SECOND = 10, 40
LISTENERS = 5
# More pages than SQLite lets its log have: whoever writes next copies them back, and syncs.
JUNK_BYTES = 8 * 1024 * 1024


class Acts(NamedTuple):
    """Somebody who goes on whatever the service says."""

    service: StreamService
    person: Person

    def act(self, times: int = 1) -> None:
        server = self.service.servers[0]
        for _ in range(times):
            self.person.issue(server)
            self.person.publish(server, SYMBOLS[0], ENTRY)

    @property
    def acknowledged(self) -> int:
        return len(self.person.keys) + len(self.person.signals)

    def kill(self) -> None:
        server = self.service.servers[0]
        os.kill(server.pid, signal.SIGKILL)
        wait_until(lambda: not command_of(server.pid))


@pytest.fixture(autouse=True)
def _no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUBLICATIONS_PER_MINUTE", "0")


def missing(installation: Installation, person: Person) -> tuple[int, int]:
    """Of what was acknowledged, and what is there without having been."""
    with installation.orm():
        keys = set(ApiKey.objects.filter(account__user=person.user).values_list("prefix", flat=True))
        signals = {str(token) for token in Signal.objects.values_list("token", flat=True)}
    told_keys, told_signals = {prefix_of(key) for key in person.keys}, set(person.signals)
    lost = len(told_keys - keys) + len(told_signals - signals)
    return lost, len(keys - told_keys) + len(signals - told_signals)


def write_junk(database: str) -> None:
    """Which nobody copies back yet."""
    with closing(sqlite3.connect(database)) as other:
        other.execute("PRAGMA wal_autocheckpoint = 0")
        other.execute("CREATE TABLE IF NOT EXISTS junk (some BLOB)")
        other.execute("INSERT INTO junk VALUES (randomblob(?))", (JUNK_BYTES,))
        other.commit()


def is_whole(database: str) -> bool:
    with closing(sqlite3.connect(database)) as other:
        # Of Django's, which a check of a table may ask; what it says is no matter here.
        other.create_function("REGEXP", 2, lambda pattern, text: True)
        return other.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.fixture
def acts(embedded: Installation) -> Iterator[Acts]:
    with embedded.orm():
        person = Person("writer")
    with streaming(embedded, 1, SYMBOLS) as service:
        yield Acts(service, person)


@pytest.fixture
def meter(acts: Acts) -> Iterator[Meter]:
    message = {"action": "subscribe", "symbols": SYMBOLS, "api_key": acts.service.make_key()}
    port = acts.service.servers[0].port
    with listening(port, "/ws/market", message | {"features": ["seq"]}, LISTENERS) as listeners:
        yield listeners


@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
@pytest.mark.row("54", "nothing acknowledged missing, nothing corrupted, live ticks continue")
def test_nothing_refused_by_a_full_disk_is_acknowledged(
    acts: Acts, meter: Meter, error: str, tell: Tell
) -> None:
    installation, pids = acts.service.installation, [acts.service.servers[0].pid]
    database, log = installation.database_url.removeprefix("sqlite:///"), installation.directory / "trace.log"
    with Flow(acts.service, TICKS_A_SECOND):
        acts.act()
        assert (acts.acknowledged, acts.person.refused) == (2, [])
        with injecting(log, pids, "pwrite64", f"error={error}") as tracer:
            meter.take()
            acts.act(ATTEMPTS)
            wait_until(lambda: tracer.injected > 0)
            meanwhile = meter.take()
        refused = acts.person.refused.copy()
        wait_until(lambda: acts.act() or acts.acknowledged >= 4)
    acts.kill()
    lost, extra = missing(installation, acts.person)
    tell(f"{error}: {len(refused)} acts refused {set(refused)}, {tracer.injected} writes failed")
    tell(f"acknowledged {acts.acknowledged}, lost {lost}; {meanwhile.frames} frames meanwhile")
    assert refused == [503] * 2 * ATTEMPTS
    assert (lost, extra) == (0, 0)
    assert meanwhile.frames > 0
    assert (meanwhile.missed, meanwhile.ended) == (0, 0)
    assert is_whole(database)


@pytest.mark.row("55", "nothing acknowledged is missing")
def test_a_sync_that_fails_loses_nothing_on_sqlite(acts: Acts, meter: Meter, tell: Tell) -> None:
    installation, pids = acts.service.installation, [acts.service.servers[0].pid]
    database, log = installation.database_url.removeprefix("sqlite:///"), installation.directory / "trace.log"
    with Flow(acts.service, TICKS_A_SECOND):
        with injecting(log, pids, "fdatasync,fsync", "error=EIO:when=1") as tracer:
            write_junk(database)
            acts.act(ATTEMPTS)
            wait_until(lambda: tracer.injected > 0)
            heard = meter.take()
        acts.act()
    acts.kill()
    lost, _ = missing(installation, acts.person)
    tell(f"{tracer.injected} sync failed: acknowledged {acts.acknowledged}, lost {lost}")
    tell(f"refused {acts.person.refused}; {heard.frames} frames meanwhile, missed {heard.missed}")
    assert acts.acknowledged > 0
    assert lost == 0
    assert (heard.missed, heard.ended) == (0, 0)
    assert heard.frames > 0
    assert is_whole(database)


@pytest.mark.row("55", "nothing acknowledged is missing")
def test_a_sync_that_fails_loses_nothing_on_postgresql(tmp_path: Path, tell: Tell) -> None:
    database = PrivatePostgres(tmp_path, is_forgetful=False)
    with database.running() as postmaster:
        installation = Installation(tmp_path, database.url)
        with installation.orm():
            person = Person("writer")
        with streaming(installation, 1, SYMBOLS) as service:
            acts = Acts(service, person)
            acts.act()
            assert acts.acknowledged == 2
            # Its log is synced by whoever commits; who fails takes all of PostgreSQL down to come up again.
            pids = family(postmaster)
            with injecting(tmp_path / "trace.log", pids, "fdatasync,fsync", "error=EIO:when=1") as tracer:
                acts.act(ATTEMPTS)
                wait_until(lambda: tracer.injected > 0)
            before = acts.acknowledged
            wait_until(lambda: acts.act() or acts.acknowledged >= before + 2)
        lost, _ = missing(installation, person)
    tell(f"{tracer.injected} syncs failed: acknowledged {acts.acknowledged}, lost {lost}")
    tell(f"refused {person.refused}")
    assert lost == 0
    assert set(person.refused) <= {503}
