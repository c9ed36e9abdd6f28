"""Row 53: PostgreSQL is paused, killed and started again in quick succession. What was acknowledged is
there in the end, and what needs no database goes on."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.db import OperationalError

from accounts.key_text import generate_key, prefix_of
from accounts.keys.issuing import issue_key
from accounts.models import ApiKey
from tests.factories import make_account
from tests.patience import wait_until
from tests.reliability.fixtures import Tell
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import Installation, Process

ROUNDS, PAUSE_S = 10, 1.0
pytestmark = pytest.mark.usefixtures("rows")


@pytest.fixture
def database(tmp_path: Path) -> PrivatePostgres:
    return PrivatePostgres(tmp_path, is_forgetful=False)


@pytest.fixture
def running(database: PrivatePostgres) -> Iterator[ExitStack]:
    with ExitStack() as stack:
        stack.enter_context(database.running())
        yield stack


@pytest.fixture
def installation(database: PrivatePostgres, running: ExitStack, tmp_path: Path) -> Installation:
    return Installation(tmp_path, database.url)


class Issuing(threading.Thread):
    """Makes keys, each on an account of its own, and knows those of which it was told that they are there."""

    def __init__(self, installation: Installation) -> None:
        super().__init__(daemon=True)
        self._installation, self._has_ended = installation, threading.Event()
        self.acknowledged: list[str] = []
        self.failed = 0

    def run(self) -> None:
        while not self._has_ended.wait(0.02):
            try:
                with self._installation.orm():
                    self.acknowledged.append(prefix_of(issue_key(make_account(), "test", by="test")[1]))
            except OperationalError:
                self.failed += 1

    def stop(self) -> None:
        self._has_ended.set()
        self.join()


def processes_of(database: PrivatePostgres) -> list[int]:
    """The server and all that it started."""
    parent = int((database.data / "postmaster.pid").read_text().splitlines()[0])
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [parent, *map(int, children)]


def pause(database: PrivatePostgres, seconds: float) -> None:
    paused = processes_of(database)
    for pid in paused:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    for pid in reversed(paused):
        os.kill(pid, signal.SIGCONT)


@pytest.mark.row("53", "nothing acknowledged lost, no 500")
def test_acknowledged_keys_survive_pauses_and_kills(
    database: PrivatePostgres, running: ExitStack, installation: Installation, tell: Tell
) -> None:
    issuing, statuses = Issuing(installation), Counter[int]()

    def ask(server: Process) -> int:
        # Well formed and never seen before, so that the database has to be asked.
        status = server.ask("/api/symbols", generate_key()).status_code
        statuses[status] += 1
        return status

    with installation.serve(1) as (server,):
        issuing.start()
        for _ in range(ROUNDS):
            before = len(issuing.acknowledged)
            wait_until(lambda: len(issuing.acknowledged) >= before + 3)  # noqa: B023 - within its turn
            pause(database, PAUSE_S)
            ask(server)
            running.close()
            ask(server)
            running.enter_context(database.running())
            pause(database, PAUSE_S / 4)
        issuing.stop()
        wait_until(lambda: ask(server) == 401)
    with installation.orm():
        stored = set(ApiKey.objects.values_list("prefix", flat=True))
    lost = set(issuing.acknowledged) - stored
    told = f"{len(issuing.acknowledged)} acknowledged, lost {len(lost)}"
    tell(f"{ROUNDS} times paused, killed, started, paused: {told}")
    tell(f"refused meanwhile: {issuing.failed}; requests {dict(statuses)}")
    assert lost == set()
    assert set(statuses) <= {401, 503}


@pytest.mark.row("53", "a key that is not there is missed")
def test_control_a_key_that_is_not_there_is_missed(installation: Installation) -> None:
    with installation.orm():
        kept, taken = (prefix_of(issue_key(make_account(), "test", by="test")[1]) for _ in range(2))
        ApiKey.objects.filter(prefix=taken).delete()
        assert {kept, taken} - set(ApiKey.objects.values_list("prefix", flat=True)) == {taken}
