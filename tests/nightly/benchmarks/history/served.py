"""`python -m tests.nightly.benchmarks.history.served BARS` serves so many minutes, and watches its own loop
when standard input says so."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from typing import Any

import msgspec

from tests.nightly.benchmarks.processes import resident_mb
from tests.programs.installation import set_up

from .beside import Held
from .prepare import fill

EVERY_S = 0.001


class LoopWatch:
    """Comes back to the loop every millisecond."""

    def __init__(self) -> None:
        self._step_ms = 0.0
        self._memory_mb: list[float] = []
        self._used_ms: list[float] = []
        self._is_over = False

    async def run(self) -> None:
        while not self._is_over:
            if len(self._used_ms) % 100 == 0:
                # SQLite maps the database, which is not counted.
                self._memory_mb.append(resident_mb(os.getpid(), "RssAnon"))
            used_s = time.thread_time()
            await asyncio.sleep(EVERY_S)
            self._used_ms.append(1000 * (time.thread_time() - used_s))

    def make_task(self, loop: asyncio.AbstractEventLoop, work: Any, **named: Any) -> asyncio.Task[Any]:
        return asyncio.Task(TimedSteps(work, self.note_step), loop=loop, **named)

    def note_step(self, used_s: float) -> None:
        self._step_ms = max(self._step_ms, 1000 * used_s)

    def stop(self) -> Held:
        self._is_over = True
        used_ms = sorted(self._used_ms)
        return Held(self._step_ms, used_ms[-1], used_ms[int(0.999 * len(used_ms))], max(self._memory_mb))


class TimedSteps(Coroutine[Any, Any, Any]):
    """A coroutine that tells how much processor time it used whenever it had the loop for itself."""

    def __init__(self, work: Coroutine[Any, Any, Any], tell: Callable[[float], None]) -> None:
        self._work, self._tell = work, tell

    def send(self, value: Any) -> Any:
        return self._timed(self._work.send, value)

    def throw(self, *error: Any) -> Any:
        return self._timed(self._work.throw, *error)

    def _timed(self, go_on: Callable[..., Any], *args: Any) -> Any:
        began_s = time.thread_time()
        try:
            return go_on(*args)
        finally:
            self._tell(time.thread_time() - began_s)

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._work.__await__()


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
    loop = asyncio.get_running_loop()
    loop.watch = asyncio.create_task(watch.run())  # type: ignore[attr-defined]
    loop.set_task_factory(watch.make_task)


if __name__ == "__main__":
    main()
