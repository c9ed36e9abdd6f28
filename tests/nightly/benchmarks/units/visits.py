"""What clients cost, a quote, one alone and sixteen at once, and a stream that begins, is open and ends; and
what ticks cost the Redis of the bus and each web process that follows them, and one that idles."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, NamedTuple

import psycopg
from redis import Redis
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from tests.nightly.benchmarks.processes import cpu_s, resident_mb, wait_until_at_rest
from tests.patience import START_PATIENCE_S
from tests.programs.running import Serve
from tests.programs.services import database_url, redis_url

from .counting import INSTRUMENTS, SYMBOL, WEB, Counter, Counts, engine, logged_postgres, run

QUOTES, STREAMS, QUIET_TICKS = 4_000, 400, 50
AT_REST_S, SETTLE_S, AT_ONCE = 4, 1, 16
FILLED = """
from time import time_ns
from accounts.limits.tiers import save_tier
from accounts.models import Tier
from instruments.models import Instrument
from tests.nightly.benchmarks.rest.dataset import prepare
prepare(10_000, time_ns() // 1_000_000)
# Their minutes are stored up to now, so no tick of theirs would be taken.
Instrument.objects.update(active=False)
tier = Tier.objects.get(name="premium")
tier.requests_per_minute = tier.streams = 10_000_000
save_tier(tier, by="benchmark")
"""
QUOTE, SIGNALS, NEWS = f"/api/market/{SYMBOL}/quote", "/api/signals?limit=50", "/api/news?limit=50"


class Visits(NamedTuple):
    at_rest: Counts
    """In a second, with hardly any ticks."""
    alone: Counts
    """A quote, asked again as soon as it is answered."""
    together: Counts
    """One of sixteen clients that do so."""
    signals: Counts
    """Fifty of ten thousand, each time."""
    news: Counts
    begun: Counts
    stays: Counts
    """In a second."""
    ended: Counts
    stream_kb: float


def visits() -> Visits:
    with serving() as (web, key, counter), ExitStack() as sockets:
        wait_until_at_rest(web.pid)
        at_rest = rest(counter)

        def of_each(many: Callable[[], int]) -> Counts:
            before = counter.now()
            number = many()
            time.sleep(SETTLE_S)
            return counter.since(before).beyond(at_rest).each(number)

        def ask_all(path: str = QUOTE) -> int:
            with closing(HTTPConnection("127.0.0.1", web.port)) as asker:
                return sum(ask(asker, key, path) == 200 for _ in range(QUOTES))

        def ask_at_once() -> int:
            with ThreadPoolExecutor(AT_ONCE) as clients:
                return sum(clients.map(lambda _: ask_all(), range(AT_ONCE)))

        opened: list[Connection] = []

        def begin_all() -> int:
            for _ in range(STREAMS):
                opened.append(begin(sockets.enter_context(connect(url(web))), key))
            return STREAMS

        def end_all() -> int:
            for stream in opened:
                stream.close()
            return STREAMS

        alone, together = of_each(ask_all), of_each(ask_at_once)
        signals, news = of_each(lambda: ask_all(SIGNALS)), of_each(lambda: ask_all(NEWS))
        before_mb = resident_mb(web.pid)
        begun = of_each(begin_all)
        stream_kb = (resident_mb(web.pid) - before_mb) / STREAMS * 1024
        stays = rest(counter).beyond(at_rest).each(STREAMS)
        return Visits(at_rest, alone, together, signals, news, begun, stays, of_each(end_all), stream_kb)


@contextmanager
def serving() -> Iterator[tuple[Serve, str, Counter]]:
    """A web process with an engine that hardly does anything, whose bus is a Redis of its own."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tickwire-bench-")))
        (database, postgres), redis = stack.enter_context(logged_postgres()), stack.enter_context(redis_url())
        urls = {
            "DATABASE_URL": database,
            "REDIS_URL": redis,
            "BUS_REDIS_URL": stack.enter_context(redis_url()),
        }
        settings = urls | {"LOG_LEVEL": "WARNING", "DEMO": "0"}
        run(folder, settings, "migrate", "--verbosity=0")
        key = run(folder, settings, "issue_key", "ann", "--tier", "premium").strip()
        run(folder, settings, "shell", "--command", FILLED)
        stack.enter_context(engine(settings | {"VAR_DIR": str(folder / "var")}, QUIET_TICKS))
        web = stack.enter_context(Serve(folder / "var", ACCESS_LOG="0", PGAPPNAME=WEB, **settings))
        with closing(HTTPConnection("127.0.0.1", web.port)) as asker:
            deadline = time.monotonic() + START_PATIENCE_S
            while ask(asker, key) != 200:
                if time.monotonic() > deadline:
                    raise RuntimeError("No quote was answered: the engine's lines may stand above.")
                time.sleep(0.2)
        asked = stack.enter_context(Redis.from_url(redis))
        yield web, key, Counter(asked, postgres, web.pid)


def rest(counter: Counter) -> Counts:
    """What a second comes to in which nobody asks for anything."""
    time.sleep(SETTLE_S)
    before = counter.now()
    time.sleep(AT_REST_S)
    spent = counter.since(before)
    return Counts(*(all_ / spent.at_s for all_ in spent))


def url(web: Serve) -> str:
    return f"ws://127.0.0.1:{web.port}/ws/market"


def ask(asker: HTTPConnection, key: str, path: str = QUOTE) -> int:
    asker.request("GET", path, headers={"X-API-Key": key})
    answer = asker.getresponse()
    answer.read()
    return answer.status


def begin(stream: Connection, key: str) -> Connection:
    stream.send(json.dumps({"action": "subscribe", "symbols": [SYMBOL], "api_key": key}))
    if json.loads(stream.recv())["type"] != "subscribed":
        raise RuntimeError("A stream did not begin.")
    return stream


WARM_S = 4
SYMBOLS = [f"BENCH{number:03}" for number in range(INSTRUMENTS)]


class Used(NamedTuple):
    """Up to now, by Redis, by one web process and of the database."""

    redis_s: float
    redis_bytes: float
    batches: float
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
    def __init__(self, database: str, redis: Redis) -> None:
        self._database, self._redis = database, redis

    def used(self, web: Serve) -> Used:
        info: Any = self._redis.info("everything")
        redis_s = info["used_cpu_user"] + info["used_cpu_sys"]
        batches = info.get("cmdstat_xadd", {"calls": 0})["calls"]
        asked = redis_s, info["total_net_output_bytes"], batches
        return Used(*asked, cpu_s(web.pid), self.ask(TRANSACTIONS))

    def ask(self, statement: str) -> int:
        with psycopg.connect(self._database) as connection:
            row = connection.execute(statement.encode()).fetchone()
        assert row is not None
        return int(row[0])


@contextmanager
def following_all(web: Serve, key: str) -> Iterator[None]:
    with connect(f"ws://127.0.0.1:{web.port}/ws/market") as socket:
        socket.send(json.dumps({"action": "subscribe", "api_key": key, "symbols": SYMBOLS}))
        if json.loads(socket.recv())["type"] != "subscribed":
            raise RuntimeError("A stream did not begin.")
        reading = Thread(target=deque, args=(socket, 0), daemon=True)
        reading.start()
        yield
    reading.join()


CONNECTIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)
TRANSACTIONS = "SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database"


def follow(webs: int, per_second: int, seconds: float, *, is_wanted: bool = False) -> Measured:
    """Nobody wants the ticks, or a client of the first web process follows all."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tickwire-bench-")))
        database, redis = stack.enter_context(database_url()), stack.enter_context(redis_url())
        settings = {"DATABASE_URL": database, "REDIS_URL": redis, "DEMO": "0", "LOG_LEVEL": "WARNING"}
        services = Services(database, stack.enter_context(Redis.from_url(redis)))
        run(folder, settings, "migrate", "--verbosity=0")
        if per_second:
            stack.enter_context(engine(settings | {"VAR_DIR": str(folder / "var")}, per_second))
        running = [stack.enter_context(Serve(folder / "var", **settings)) for _ in range(webs)]
        if is_wanted:
            key = run(folder, settings, "issue_key", "ann", "--tier", "premium").strip()
            stack.enter_context(following_all(running[0], key))
        time.sleep(WARM_S)
        began, before = time.monotonic(), services.used(running[0])
        time.sleep(seconds)
        used = services.used(running[0]).a_second_since(before, time.monotonic() - began)
        return Measured(webs, used, resident_mb(running[0].pid), services.ask(CONNECTIONS))
