"""What ticks cost the Redis of the bus and each web process that follows them, and one that idles."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, NamedTuple

import psycopg
from redis import Redis
from websockets.sync.client import connect

from tests.nightly.benchmarks.processes import cpu_s, resident_mb
from tests.programs.running import Serve
from tests.programs.services import database_url, redis_url

from .counting import INSTRUMENTS, engine, run

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
