"""`python -m tests.nightly.benchmarks.slots`: Redis loses its data under a quarter of a million streams. When
do all of them count again, and how long does everybody else wait for Redis meanwhile?

PROCESSES=200 SLOTS=1250 are the reporters and the streams of each; they share two real processes. Where the
target is missed, the command fails.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.programs.installation import set_up

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
set_up()

from redis import Redis  # noqa: E402

from accounts.open_streams.redis_slots import RedisSlots  # noqa: E402
from accounts.open_streams.stream_slots import MemorySlots, OpenStream, Slot  # noqa: E402
from tests.nightly.benchmarks.tables import Verdict, conclude, say  # noqa: E402
from tests.programs import services  # noqa: E402

REPORTERS, SLOTS = int(os.environ.get("PROCESSES", "200")), int(os.environ.get("SLOTS", "1250"))
HOSTS = 2
RECOVERED_WITHIN_S, PING_MS = 15.0, 50.0
GIVEN_UP_AFTER_S = 120.0
STREAMS_OF_ACCOUNT = 5


def host(url: str, number: int, told: Connection) -> None:
    # It stands for other machines, which take no processor from Redis and from who asks it.
    os.nice(10)
    asyncio.run(report(url, number, told))


async def report(url: str, number: int, told: Connection) -> None:
    reporters = [RedisSlots(url, filled(number * REPORTERS + each)) for each in range(REPORTERS // HOSTS)]
    for reporter in reporters:
        await reporter.start()
    told.send("started")
    await asyncio.to_thread(told.recv)
    await asyncio.gather(*(reporter.stop() for reporter in reporters))


def filled(number: int) -> MemorySlots:
    """Its streams are of accounts of its own, a few each."""
    here = MemorySlots()
    for index in range(SLOTS):
        account = (number * SLOTS + index) // STREAMS_OF_ACCOUNT
        stream = OpenStream(str(account), "/ws/market", time.time())
        here.put(Slot(stream, STREAMS_OF_ACCOUNT, lambda code: None, lambda slot: None))
    return here


def slots_of(client: Any) -> int:
    """Counted as seldom as it does not disturb what is measured."""
    with client.pipeline(transaction=False) as asked:
        for process in client.zrange("tickwire:streams:beats", 0, -1):
            asked.hlen(b"tickwire:streams:process:" + process)
        return sum(asked.execute())


def wait(client: Redis, count: int, pings_ms: list[float]) -> float:
    began_at = counted_at = time.monotonic()
    while True:
        asked_at = time.monotonic()
        client.ping()
        pings_ms.append((time.monotonic() - asked_at) * 1000)
        if asked_at - counted_at > 0.5:
            if slots_of(client) == count:
                return asked_at - began_at
            counted_at = time.monotonic()
        if asked_at - began_at > GIVEN_UP_AFTER_S:
            return float("inf")
        time.sleep(0.005)


def main() -> int:
    wanted = REPORTERS // HOSTS * HOSTS * SLOTS
    spawn = multiprocessing.get_context("spawn")
    with (
        TemporaryDirectory() as directory,
        services.redis(Path(directory)) as url,
        Redis.from_url(url) as client,
    ):
        lines = []
        for number in range(HOSTS):
            ours, theirs = spawn.Pipe()
            spawn.Process(target=host, args=(url, number, theirs), daemon=True).start()
            lines.append(ours)
        for line in lines:
            line.recv()
        wait(client, wanted, [])
        client.flushall()
        client.config_resetstat()
        pings: list[float] = []
        took_s = wait(client, wanted, pings)
        found, calls = slots_of(client), client.info("commandstats")["cmdstat_evalsha"]
        for line in lines:
            line.send("stop")
    p50, p99 = (sorted(pings)[int(len(pings) * share)] for share in (0.5, 0.99))
    say(f"PING meanwhile: p50 {p50:.1f} ms, p99 {p99:.1f} ms, most {max(pings):.1f} ms of {len(pings)}\n")
    say(f"{calls['calls']:,} calls of {calls['usec_per_call'] / 1000:.2f} ms each\n")
    say(f"{found:,} of {wanted:,} slots of {REPORTERS} reporters after {took_s:.1f} s\n")
    slots, most = f"{wanted:,} slots counted again", max(pings)
    return conclude(
        Verdict(slots, f"≤ {RECOVERED_WITHIN_S:g} s", f"{took_s:.1f} s", took_s <= RECOVERED_WITHIN_S),
        Verdict("The longest PING meanwhile", f"≤ {PING_MS:g} ms", f"{most:.1f} ms", most <= PING_MS),
    )


if __name__ == "__main__":
    sys.exit(main())
