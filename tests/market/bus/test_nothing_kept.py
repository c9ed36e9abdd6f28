"""A service in one process whose disk takes nothing: what is acknowledged then, and what staff hear of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pytest_django import Settings
from redis import Redis

from core.clock import now_ms
from core.fault_log import IS_FULL
from core.threads import in_thread
from instruments.catalogue import catalogue
from market.engine.bus.local_bus import LocalBus, LocalJournal
from market.engine.bus.redis_bus import FULL, RedisBus
from market.engine.engine import NO_ROOM, Engine
from market.engine.push_queue import NothingKept
from market.engine.runner import Runner
from market.models import EngineState
from market.prices.quotes import Prices
from market.prices.records import Tick
from market.push.keys import issue_ingest_key
from market.runtime import market
from tests.client import Server
from tests.factories import make_instrument
from tests.market.push.conftest import make_tick
from tests.market.running import make_runner, no_feed
from tests.market.store.test_engine_store import broken_database
from tests.patience import PATIENCE_S, until, wait_until

pytestmark = [pytest.mark.served, pytest.mark.services]


@pytest.fixture
def pushing(settings: Settings, tmp_path: Path, transactional_db: None) -> Iterator[httpx.Client]:
    settings.REDIS_URL, settings.VAR_DIR = "", tmp_path
    make_instrument("EURUSD")
    key = issue_ingest_key("desk", "", by="test")[1]
    with Server() as server, httpx.Client(base_url=server.url, timeout=PATIENCE_S) as client:
        client.headers["X-Ingest-Key"] = key
        yield client


def test_ticks_are_taken_as_long_as_the_database_or_the_journal_keeps_them(
    pushing: httpx.Client, tmp_path: Path
) -> None:
    def push() -> httpx.Response:
        return pushing.post("/ingest/ticks", json=make_tick("EURUSD"))

    def degraded() -> Any:
        return pushing.get("/readyz").json()["degraded"]

    journal = tmp_path / "journal"
    with broken_database("market_lastquote"):
        push()
        wait_until(lambda: market.runner is not None and market.runner.writer.is_refused)
        assert push().status_code == 200

    journal.rename(tmp_path / "away")
    journal.write_text("")
    push()
    wait_until(lambda: push().status_code == 200 and "journal" in degraded())

    with broken_database("market_lastquote"):
        wait_until(lambda: push().status_code == 503)
        refused = push()
        assert refused.json()["error"]["code"] == "overloaded"
        assert refused.headers["Retry-After"] == "2"

    journal.unlink()
    journal.mkdir()
    wait_until(lambda: push().status_code == 200 and "journal" not in degraded())


def test_numbering_that_begins_anew_is_written_before_anything_is_acknowledged_in_it(
    tmp_path: Path, transactional_db: None
) -> None:
    async def start() -> tuple[str, str]:
        bus = LocalBus(lambda records: None, LocalJournal(tmp_path, dict))
        runner = Runner(Engine(Prices("bid")), no_feed, bus)
        assert await runner.writer.try_lease()
        await runner.start()
        written = await in_thread(lambda: EngineState.objects.get().epoch)
        await runner.stop()
        return written, bus.journal_position.epoch

    written, given = asyncio.run(start())

    assert written == given


def test_engine_whose_redis_is_full_takes_no_ticks_and_the_log_says_why(
    url: str, client: Redis, transactional_db: None, caplog: pytest.LogCaptureFixture
) -> None:
    async def push() -> None:
        runner = Runner(Engine(Prices("bid")), no_feed, RedisBus(url))
        assert await runner.writer.try_lease()
        client.config_set("maxmemory", 1)
        await runner.start()
        try:
            await until(lambda: runner.bus.fault == FULL)
            with pytest.raises(NothingKept):
                runner.push("push:desk", [Tick("EURUSD", 1.0, 1.1, now_ms())])
            client.config_set("maxmemory", 0)
            await until(lambda: not runner.bus.fault)
            assert runner.push("push:desk", [Tick("EURUSD", 1.0, 1.1, now_ms())]) != [NO_ROOM]
        finally:
            client.config_set("maxmemory", 0)
            await runner.stop()
            await in_thread(runner.writer.lease.leave)

    asyncio.run(push())
    assert [line.endswith(IS_FULL) for line in caplog.messages if line.startswith("The bus is full")][0]


def test_minute_of_which_nothing_is_kept_is_partial(transactional_db: None) -> None:
    """Neither the journal nor the database of this runner is open."""
    facts, engine = catalogue.get(make_instrument("EURUSD").symbol), Engine(Prices("bid"))

    async def push() -> None:
        runner, tick = make_runner(engine), Tick("EURUSD", 1.0, 1.1, now_ms())
        assert await runner.writer.try_lease()
        assert engine.accept(tick, tick.time_ms) is None
        with pytest.raises(NothingKept):
            runner.push("push:desk", [tick])
        await in_thread(runner.writer.lease.leave)

    asyncio.run(push())
    minute = engine.prices.history(facts).builder.forming("1m")
    assert minute is not None
    assert minute.partial


def test_process_that_lost_the_lease_takes_no_ticks(transactional_db: None) -> None:
    """As one that stood still while another took over: nobody would keep them."""

    async def push() -> list[str | None]:
        runner = make_runner(Engine(Prices("bid")))
        assert await runner.writer.try_lease()
        await runner.start()
        try:
            assert runner.push("push:desk", []) == []
            runner.writer.lose_lease()
            return runner.push("push:desk", [])
        finally:
            await runner.stop()
            await in_thread(runner.writer.lease.leave)

    with pytest.raises(NothingKept):
        asyncio.run(push())
