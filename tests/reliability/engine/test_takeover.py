"""Several engines on PostgreSQL and Redis: one writes, and who takes over goes on where it was."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.patience import wait_until
from tests.reliability.conftest import Tell
from tests.reliability.services.engine_processes import (
    RUNS,
    WAITS,
    EngineProcess,
    breaks,
    engines,
    entries,
    writer_of,
)
from tests.reliability.services.engines import Publisher, Unanswered, make_publisher, settle, stored
from tests.reliability.services.processes import Installation, Process

SEED = 20_261_123
pytestmark = [
    # Or a push that was under way would wait for a dead engine.
    pytest.mark.usefixtures("prompt"),
    pytest.mark.row("5", "no acknowledged tick lost; sequence numbers without a gap"),
]


@contextmanager
def sending(publisher: Publisher, server: Process) -> Iterator[None]:
    """Without a pause, whatever happens; all is answered at the end."""
    ending = threading.Event()

    def send() -> None:
        while not ending.wait(0.02):
            try:
                publisher.send(server.url)
            except Unanswered:
                continue

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
    publisher.recover(server.url)


def leader(installation: Installation, running: list[EngineProcess]) -> EngineProcess:
    pid = writer_of(installation)
    (found,) = [engine for engine in running if engine.pid == pid]
    return found


def goes_on(publisher: Publisher) -> None:
    count = len(publisher.answered_at)
    wait_until(lambda: len(publisher.answered_at) > count)


def taken_over(installation: Installation, publisher: Publisher, from_pid: int) -> float:
    """After how many seconds ticks were acknowledged again."""
    began_at = time.monotonic()
    wait_until(lambda: writer_of(installation) != from_pid)
    goes_on(publisher)
    return time.monotonic() - began_at


def test_a_killed_or_stopped_engine_is_replaced_and_writes_nothing_more(
    scaled: Installation, tell: Tell
) -> None:
    replace_twice(scaled, "HANDED", tell)


def replace_twice(scaled: Installation, symbol: str, tell: Tell) -> tuple[float, float]:
    """How long each took."""
    publisher = make_publisher(scaled, symbol, SEED)
    with engines(scaled, 3) as running, scaled.serve(1) as (server,):
        publisher.recover(server.url)
        with sending(publisher, server):
            goes_on(publisher)
            first = leader(scaled, running)
            first.kill()
            running.remove(first)
            after_kill_s = taken_over(scaled, publisher, first.pid)

            second = leader(scaled, running)
            (third,) = [engine for engine in running if engine is not second]
            with second.stopped():
                after_stop_s = taken_over(scaled, publisher, second.pid)
            wait_until(lambda: second.said(WAITS) == 2)
            goes_on(publisher)
        settle(scaled, symbol, publisher.ticks)
        assert writer_of(scaled) == third.pid
        assert (second.said(RUNS), third.said(RUNS)) == (1, 1)
        log = server.log.read_text()
    found = entries(scaled.redis_url, symbol)
    seqs = [seq for entry in found for seq in entry.seqs]
    tell(f"{len(found)} entries and {len(seqs)} ticks in the stream: 0 missing, 0 duplicated")
    tell(f"acknowledged but lost: {publisher.forgotten}")
    assert len({entry.epoch for entry in found}) == 1
    assert breaks([entry.number for entry in found]) == []
    assert seqs == list(range(1, len(publisher.ticks) + 1))
    assert stored(scaled, symbol).seq == len(publisher.ticks)
    # Told by who takes over: he did not know a tick that had been acknowledged. (A server that is its own
    # engine has no successor and forgets the last second.)
    assert publisher.forgotten == 0
    assert "loaded again" not in log
    return after_kill_s, after_stop_s
