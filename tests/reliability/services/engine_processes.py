"""`manage.py run_engine` as processes that a test may kill and stop, and the stream that they write."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from redis import Redis

from core.redis.connections import key_of
from market.engine.bus.journal import HEAD, STREAM, decode, number_of
from market.models import EngineState
from market.prices.records import TickAccepted
from tests.patience import wait_until

from .frozen import frozen
from .processes import Installation, logged, tied

RUNS, WAITS = "The engine runs", "Waiting for the lease"


class EngineProcess:
    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process, self.log = process, log
        self.pid = process.pid

    def said(self, what: str) -> int:
        """How often."""
        assert self._process.poll() is None, self.log.read_text()[-2000:]
        return self.log.read_text().count(what)

    def kill(self) -> None:
        """kill -9, and gone: who starts a process also asks what became of it."""
        self._process.kill()
        self._process.wait()

    def stopped(self) -> AbstractContextManager[None]:
        return frozen([self.pid])


@contextmanager
def engines(installation: Installation, count: int, **changes: str) -> Iterator[list[EngineProcess]]:
    """All start at once; one of them gets to run, the others stand by."""
    with ExitStack() as running:
        started = [
            running.enter_context(engine_process(installation, number, changes)) for number in range(count)
        ]
        wait_until(lambda: all(engine.said(WAITS) for engine in started))
        wait_until(lambda: any(engine.said(RUNS) for engine in started))
        yield started


@contextmanager
def engine_process(
    installation: Installation, number: int, changes: dict[str, str]
) -> Iterator[EngineProcess]:
    log, environment = installation.directory / f"engine-{number}.log", installation.environment(**changes)
    command = tied(*installation.engine_program, python=installation.python)
    with logged(command, log, environment, installation.root) as process:
        yield EngineProcess(process, log)


def writer_of(installation: Installation) -> int:
    """The process that holds the lease."""
    with installation.orm():
        return int(EngineState.objects.get().writer.split(":")[-2])


class Entry(NamedTuple):
    number: int
    epoch: str
    seqs: list[int]


def entries(redis_url: str, symbol: str) -> list[Entry]:
    """What the stream holds, with the numbers of an instrument's ticks."""
    with Redis.from_url(redis_url) as client:
        found: Any = client.xrange(key_of(STREAM))
    made = []
    for at, fields in found:
        ticks = [record for record in decode(fields[b"d"]) if isinstance(record, TickAccepted)]
        seqs = [tick.seq for tick in ticks if tick.symbol == symbol]
        made.append(Entry(number_of(at), fields[b"e"].decode(), seqs))
    return made


def last_number(redis_url: str) -> int:
    with Redis.from_url(redis_url) as client:
        found: Any = client.hget(key_of(HEAD), "n")
    return int(found)


def breaks(numbers: list[int]) -> list[int]:
    """Where a number is not the one before and one more."""
    return [after for before, after in zip(numbers, numbers[1:], strict=False) if after != before + 1]
