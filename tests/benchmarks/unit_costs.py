"""`make bench-units`: what one request and one tick cost Redis, and what a web process
costs everybody by being there. docs/operate/scale.md reckons with these figures and with those of a message,
which `make bench-streams` measures.

TICKS=2000 SECONDS=20 are the load and how long each figure is taken.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tests.benchmarks.installation import set_up

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
set_up()

import psycopg  # noqa: E402
from redis import Redis  # noqa: E402
from websockets.sync.client import connect  # noqa: E402
from websockets.sync.connection import Connection  # noqa: E402

from accounts.limits.redis_window import RedisWindow  # noqa: E402
from tests.benchmarks.servers import TICKS_PER_S  # noqa: E402
from tests.benchmarks.tables import aligned, say  # noqa: E402
from tests.programs.commands import manage  # noqa: E402
from tests.programs.running import Serve  # noqa: E402
from tests.programs.services import database_url, redis_url  # noqa: E402

TICKS, SECONDS = int(os.environ.get("TICKS", "2000")), int(os.environ.get("SECONDS", "20"))
INSTRUMENTS, SYMBOL = 50, "BENCH000"
FEW, MANY = 1, 4
REQUESTS, ACCOUNTS, AT_ONCE = 40_000, 500, 16
QUOTES, STREAMS, QUIET = 5_000, 500, 50
WIDE = """
from accounts.limits.tiers import save_tier
from accounts.models import Tier
tier = Tier.objects.get(name="premium")
tier.requests_per_minute = tier.streams = 100_000
save_tier(tier, by="benchmark")
"""


class Used(NamedTuple):
    """Up to now, by Redis and by one web process."""

    redis_s: float
    redis_bytes: float
    web_s: float
    transactions: float

    def a_second_since(self, before: Used, passed_s: float) -> Used:
        return Used(*((now - then) / passed_s for now, then in zip(self, before, strict=True)))


class Measured(NamedTuple):
    """In a second with so many web processes."""

    webs: int
    used: Used
    resident_mb: float
    connections: int


class Services:
    def __init__(self, database: str, redis: str) -> None:
        self._database, self._redis = database, Redis.from_url(redis)

    def used(self, web: Serve) -> Used:
        info: Any = self._redis.info()
        redis_s = info["used_cpu_user"] + info["used_cpu_sys"]
        return Used(redis_s, info["total_net_output_bytes"], cpu_s(web.pid), self._ask(TRANSACTIONS))

    def connections(self) -> int:
        return self._ask(CONNECTIONS)

    def _ask(self, statement: str) -> int:
        with psycopg.connect(self._database) as connection:
            row = connection.execute(statement.encode()).fetchone()
        assert row is not None
        return int(row[0])


CONNECTIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)
TRANSACTIONS = "SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database"


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


@contextmanager
def engine(environment: Mapping[str, str], per_second: int, seconds: int) -> Iterator[None]:
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks.engine.run",
        str(INSTRUMENTS),
        str(per_second),
        str(seconds),
    ]
    running = subprocess.Popen(command, env=os.environ | dict(environment), stdout=subprocess.DEVNULL)
    try:
        yield
        if running.wait(seconds + 120):
            raise RuntimeError("The engine ended with a fault; its lines stand above.")
    finally:
        running.kill()
        running.wait()


def measure(webs: int, per_second: int) -> Measured:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tickwire-bench-")))
        database, redis = stack.enter_context(database_url()), stack.enter_context(redis_url())
        settings = {"DATABASE_URL": database, "REDIS_URL": redis, "DEMO": "0", "LOG_LEVEL": "WARNING"}
        named = settings | {"VAR_DIR": str(folder / "var"), "DJANGO_SETTINGS_MODULE": "config.settings"}
        services = Services(database, redis)
        run(folder, settings, "migrate", "--verbosity=0")
        if per_second:
            # The webs start, the engine writes its instruments, and a second passes in which all grow warm.
            stack.enter_context(engine(named, per_second, 2 * SECONDS + 20 * webs))
        running = [stack.enter_context(Serve(folder / "var", **settings)) for _ in range(webs)]
        time.sleep(5)
        began, before = time.monotonic(), services.used(running[0])
        time.sleep(SECONDS)
        used = services.used(running[0]).a_second_since(before, time.monotonic() - began)
        return Measured(webs, used, resident_mb(running[0].pid), services.connections())


class Visits(NamedTuple):
    """What clients cost a web process: microseconds, and memory."""

    quote_us: float
    stream_us: float
    stream_kb: float


def visits() -> Visits:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tickwire-bench-")))
        database, redis = stack.enter_context(database_url()), stack.enter_context(redis_url())
        settings = {"DATABASE_URL": database, "REDIS_URL": redis, "LOG_LEVEL": "WARNING", "DEMO": "0"}
        run(folder, settings, "migrate", "--verbosity=0")
        key = run(folder, settings, "issue_key", "ann", "--tier", "premium").strip()
        run(folder, settings, "shell", "--command", WIDE)
        stack.enter_context(engine(settings | {"VAR_DIR": str(folder / "var")}, QUIET, 60))
        web = stack.enter_context(Serve(folder / "var", ACCESS_LOG="0", **settings))
        asker = HTTPConnection("127.0.0.1", web.port)
        while ask(asker, key) != 200:
            time.sleep(0.2)
        before_s = cpu_s(web.pid)
        for _ in range(QUOTES):
            ask(asker, key)
        quotes_s = cpu_s(web.pid) - before_s
        before_s, before_mb = cpu_s(web.pid), resident_mb(web.pid)
        with ExitStack() as streams:
            for _ in range(STREAMS):
                begin(streams.enter_context(connect(f"ws://127.0.0.1:{web.port}/ws/market")), key)
            began_s, grown_mb = cpu_s(web.pid) - before_s, resident_mb(web.pid) - before_mb
        return Visits(quotes_s / QUOTES * 1e6, began_s / STREAMS * 1e6, grown_mb / STREAMS * 1024)


def run(folder: Path, settings: Mapping[str, str], *command: str) -> str:
    ran = manage(folder / "var", *command, **settings)
    if ran.returncode:
        raise RuntimeError(ran.stderr)
    return ran.stdout


def ask(asker: HTTPConnection, key: str) -> int:
    asker.request("GET", f"/api/market/{SYMBOL}/quote", headers={"X-API-Key": key})
    answer = asker.getresponse()
    answer.read()
    return answer.status


def begin(stream: Connection, key: str) -> None:
    stream.send(json.dumps({"action": "subscribe", "symbols": [SYMBOL], "api_key": key}))
    if json.loads(stream.recv())["type"] != "subscribed":
        raise RuntimeError("A stream did not begin.")


def window_cost() -> float:
    """Microseconds of Redis for each request that is counted, as many processes would send them."""
    with redis_url() as url, Redis.from_url(url) as client:

        def spent_s() -> float:
            info: Any = client.info("cpu")
            return float(info["used_cpu_user"] + info["used_cpu_sys"])

        before = spent_s()
        asyncio.run(count(url))
        return (spent_s() - before) / REQUESTS * 1e6


async def count(url: str) -> None:
    window = RedisWindow(url)

    async def caller(number: int) -> None:
        for turn in range(REQUESTS // AT_ONCE):
            await window.ask(str((turn * AT_ONCE + number) % ACCOUNTS), 300, 1)

    await asyncio.gather(*(caller(number) for number in range(AT_ONCE)))
    await window.close()


def main() -> None:
    say("Each figure is of processor time, which other work on the machine moves little.\n")
    window_us, visited = window_cost(), visits()
    idle, few, many = measure(FEW, 0), measure(FEW, TICKS), measure(MANY, TICKS)
    readers = MANY - FEW
    per_reader_us = (many.used.redis_s - few.used.redis_s) / readers / TICKS * 1e6
    bytes_each = (many.used.redis_bytes - few.used.redis_bytes) / readers / TICKS
    rows = [
        ["", "costs", "of"],
        ["a quote answered", f"{visited.quote_us:.0f} µs", "the web process"],
        ["a stream that begins", f"{visited.stream_us:.0f} µs", "the web process"],
        ["a stream that is open", f"{visited.stream_kb:.0f} KB", "the web process"],
        ["a request's limit", f"{window_us:.1f} µs", "Redis"],
        ["a tick, for each web process", f"{per_reader_us:.1f} µs", "Redis"],
        ["a tick, for each web process", f"{bytes_each:.0f} bytes", "the network behind Redis"],
        ["a tick, taken in", f"{few.used.redis_s / TICKS * 1e6 - per_reader_us:.1f} µs", "Redis"],
        [
            "a tick, followed",
            f"{(few.used.web_s - idle.used.web_s) / TICKS * 1e6:.1f} µs",
            "each web process",
        ],
        ["a web process that idles", f"{idle.used.web_s * 1000:.0f} ms a second", "a core"],
        ["a web process that idles", f"{idle.resident_mb:.0f} MB", "memory"],
        ["a web process that idles", f"{idle.used.transactions:.1f} transactions a second", "PostgreSQL"],
        ["a web process that idles", f"{idle.connections} connections", "PostgreSQL"],
    ]
    say(f"\n{TICKS:,} ticks a second of {INSTRUMENTS} instruments:\n\n{aligned(rows)}")


if __name__ == "__main__":
    main()
