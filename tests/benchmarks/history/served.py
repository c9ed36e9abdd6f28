"""`python -m tests.benchmarks.history.served BARS` serves so many minutes, and watches its own loop when
standard input says so."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import msgspec

from tests.benchmarks.installation import set_up

from .beside import Held
from .prepare import fill

EVERY_S = 0.001


class LoopWatch:
    """Comes back to the loop every millisecond."""

    def __init__(self) -> None:
        self._memory_mb: list[float] = []
        self._used_ms: list[float] = []
        self._late_ms: list[float] = []
        self._is_over = False

    async def run(self) -> None:
        # Opened once: the watch's own work is part of what it sees.
        self._schedstat = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        while not self._is_over:
            if len(self._late_ms) % 100 == 0:
                self._memory_mb.append(memory_mb())
            due_s, used_s, waited_s = time.perf_counter() + EVERY_S, time.thread_time(), self._queued_s()
            await asyncio.sleep(EVERY_S)
            self._used_ms.append(1000 * (time.thread_time() - used_s))
            self._late_ms.append(1000 * (time.perf_counter() - due_s - (self._queued_s() - waited_s)))
        os.close(self._schedstat)

    def _queued_s(self) -> float:
        """How long this thread has waited for a core that others had."""
        return int(os.pread(self._schedstat, 100, 0).split()[1]) / 1e9

    def stop(self) -> Held:
        self._is_over = True
        used_ms, late_ms = sorted(self._used_ms), sorted(self._late_ms)
        return Held(
            used_ms[-1],
            used_ms[int(0.999 * len(used_ms))],
            late_ms[int(0.99 * len(late_ms))],
            late_ms[-1],
            max(self._memory_mb),
        )


def memory_mb() -> float:
    """Without files that are mapped: SQLite maps the database."""
    return int(Path("/proc/self/status").read_text().partition("RssAnon:")[2].split()[0]) / 1024


def main() -> None:
    set_up()
    from django.core.management import call_command

    from tests.client import Server

    call_command("migrate", verbosity=0)
    key = fill(int(sys.argv[1]), 0, Path())
    with Server() as server:
        sys.stdout.write(f"{server.port} {key}\n")
        sys.stdout.flush()
        watch = LoopWatch()
        for line in sys.stdin:
            if line == "watch\n":
                watch = LoopWatch()
                server.run(begin(watch))
            else:
                sys.stdout.buffer.write(msgspec.json.encode(watch.stop()) + b"\n")
                sys.stdout.buffer.flush()


async def begin(watch: LoopWatch) -> None:
    asyncio.get_running_loop().watch = asyncio.create_task(watch.run())  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
