"""A machine that stands still: every process of a service is stopped, and goes on later unaware of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def family(pid: int) -> list[int]:
    """A process and all that it started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in family(int(child)))]


@contextmanager
def frozen(pids: Iterable[int]) -> Iterator[None]:
    # Parents first: they start nobody meanwhile.
    stopped: list[int] = []
    for parent in pids:
        os.kill(parent, signal.SIGSTOP)
        stopped += family(parent)
        send(stopped, signal.SIGSTOP)
    try:
        yield
    finally:
        send(stopped, signal.SIGCONT)


def send(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        # A worker that was about to end may have done so.
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
