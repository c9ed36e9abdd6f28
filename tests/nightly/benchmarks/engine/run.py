"""`python -m tests.nightly.benchmarks.engine.run INSTRUMENTS TICKS_PER_SECOND SECONDS` is one engine under
load, with the database and the bus that its environment names. 0 ticks a second: as many as it takes; 0
seconds: only its stages, one by one."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

import msgspec

from tests.programs.installation import set_up

if TYPE_CHECKING:
    from market.engine.runner import Runner
    from market.runtime import MarketRuntime

BATCH = 200
PAUSE_S = 0.005
WATCH_S = 0.01
WARM_UP_S = 1.0


class Run(msgspec.Struct):
    stages: dict[str, float] = {}
    """Microseconds of processor time a tick."""
    ticks: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    """Of all threads: what writing takes is in it, what PostgreSQL and Redis take themselves is not."""
    longest_wait_s: float = 0.0
    """That the event loop kept somebody waiting."""
    pushed: int = 0
    """Ticks with those of the first second, in which it warms up."""
    written: int = 0
    """Of these, those that the database knows of at the end: all, or the run is worth nothing."""


def main() -> None:
    set_up()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    many, per_second, seconds = map(int, sys.argv[1:4])
    run = under_load(many, per_second, seconds) if seconds else stage_by_stage(many)
    sys.stdout.write(msgspec.json.encode(run).decode())


def stage_by_stage(many: int) -> Run:
    from .stages import Stages, make_instruments

    return Run(Stages(make_instruments(many), time.time_ns() // 1_000_000).run())


def under_load(many: int, per_second: int, seconds: int) -> Run:
    from django.db.models import Sum

    from market.models import LastQuote

    from .stages import make_instruments

    make_instruments(many)
    run = Run()
    asyncio.run(serve(run, per_second, seconds))
    run.written = LastQuote.objects.aggregate(all=Sum("seq"))["all"]
    return run


async def serve(run: Run, per_second: int, seconds: int) -> None:
    from django.conf import settings

    from core import process

    market = engine_alone()
    if settings.REDIS_URL:
        runner = market.separate_engine()
        await runner.writer.wait_for_lease()
        await runner.start()
    else:
        await market.start()
    assert market.runner is not None
    process.freeze_startup_objects()
    numbers = count(1)
    warm = await feed(market.runner, per_second, WARM_UP_S, numbers)
    watch = asyncio.create_task(longest_wait())
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    run.ticks = await feed(market.runner, per_second, seconds, numbers)
    run.wall_s, run.cpu_s = time.monotonic() - began_s, time.process_time() - began_cpu_s
    watch.cancel()
    run.longest_wait_s = await watch
    run.pushed = warm + run.ticks
    await market.stop()


def engine_alone() -> MarketRuntime:
    """With what judges signals, and without streams: they are measured by a benchmark of their own."""
    from market.runtime import MarketRuntime, market

    alone = MarketRuntime()
    alone.engine_listeners = market.engine_listeners
    return alone


async def feed(runner: Runner, per_second: int, seconds: float, numbers: Iterator[int]) -> int:
    """Push in batches what is due, or what fits in; returns how many ticks that were."""
    from instruments.catalogue import catalogue

    from .stages import make_tick

    instruments, began_s, sent = catalogue.active(), time.monotonic(), 0
    while (passed_s := time.monotonic() - began_s) < seconds:
        due = int(passed_s * per_second) - sent if per_second else BATCH
        time_ms = time.time_ns() // 1_000_000
        batch = [
            make_tick(instruments[number % len(instruments)], number, time_ms)
            for _, number in zip(range(due), numbers, strict=False)
        ]
        refused = [reason for reason in runner.push("push", batch) if reason]
        if refused:
            raise RuntimeError(f"A tick was refused: {refused[0]}")
        sent += due
        await asyncio.sleep(PAUSE_S if per_second else 0)
    return sent


async def longest_wait() -> float:
    longest_s = 0.0
    try:
        while True:
            before_s = time.monotonic()
            await asyncio.sleep(WATCH_S)
            longest_s = max(longest_s, time.monotonic() - before_s - WATCH_S)
    except asyncio.CancelledError:
        return longest_s


if __name__ == "__main__":
    main()
