"""Rows 7, 8 and 48 for the engine: Redis or PostgreSQL fails under it and its readers. It plays a file whose
every tick is known, so that what is stored and what is answered can be told from any number of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.factories import make_account, make_instrument, make_key, make_tier
from tests.patience import wait_until
from tests.reliability.conftest import Tell
from tests.reliability.services.engine_processes import engines, last_number
from tests.reliability.services.engines import stored
from tests.reliability.services.private_servers import PrivatePostgres, PrivateRedis
from tests.reliability.services.processes import Installation, Process

SYMBOL = "PLAYED"
A_SECOND = 100
# For longer than the tests of this file take on a slow machine: they wait for ticks that are still to come.
SECONDS = 900
BIDS = [round(1.08 + (number * 7919 % 4001) / 1e5, 5) for number in range(SECONDS * A_SECOND)]
HIGHS, LOWS = list(accumulate(BIDS, max)), list(accumulate(BIDS, min))
pytestmark = [
    pytest.mark.usefixtures("prompt"),
    pytest.mark.row("7, 8, 48", "no acknowledged tick lost"),
]


class Candles(NamedTuple):
    """All of them as one: how many ticks they are of, and the prices."""

    ticks: int
    high: float
    low: float
    close: float

    def are_right(self) -> bool:
        last = self.ticks - 1
        return self[1:] == (HIGHS[last], LOWS[last], BIDS[last])


class Playing:
    def __init__(self, database: PrivatePostgres, redis: PrivateRedis, directory: Path) -> None:
        self.database, self.redis = database, redis
        self.installation = Installation(directory, database.url, redis.url)
        self.server: Process
        self.running_database, self.running_redis = ExitStack(), ExitStack()

    def prepare(self) -> None:
        with self.installation.orm():
            make_instrument(SYMBOL, source="replay")
            self.key = make_key(make_account(tier=make_tier("roomy", requests_per_minute=100_000)))
        lines = (
            f"{1_795_000_000_000 + number * 1000 // A_SECOND},{bid},{bid}" for number, bid in enumerate(BIDS)
        )
        path = self.installation.directory / f"{SYMBOL}.csv"
        path.write_text("\n".join(["timestamp,bid,ask", *lines]) + "\n")

    def stored(self) -> Candles:
        """What an engine would go on from."""
        found = stored(self.installation, SYMBOL)
        minutes = sorted(found.minutes().values(), key=lambda minute: minute.opened_ms)
        candles = as_one((minute.volume, minute.high, minute.low, minute.close) for minute in minutes)
        assert candles.ticks == found.seq
        return candles

    def answered(self) -> Candles | None:
        """What the web process says; nothing while it cannot say who asks."""
        response = self.server.ask(f"/api/market/{SYMBOL}?timeframe=1m&bars=500", self.key)
        if response.status_code == 503:
            return None
        candles: list[dict[str, Any]] = response.json()["ohlcv"]
        return as_one(
            (candle["volume"], candle["high"], candle["low"], candle["close"]) for candle in candles
        )

    def goes_on(self, ticks: int = A_SECOND // 2) -> float:
        """Wait until some more ticks are stored; returns how many seconds it took."""
        enough = self.stored().ticks + ticks
        took = wait_until(lambda: self.stored().ticks >= enough)
        assert self.stored().are_right()
        return took

    def is_heard(self) -> float:
        """Wait until the web process knows what is stored now, and everything before it."""
        enough = self.stored().ticks
        took = wait_until(lambda: (found := self.answered()) is not None and found.ticks >= enough)
        found = self.answered()
        assert found is not None
        assert found.are_right()
        return took


def as_one(candles: Iterable[tuple[float, float, float, float]]) -> Candles:
    volumes, highs, lows, closes = zip(*candles, strict=True)
    return Candles(round(sum(volumes)), max(highs), min(lows), closes[-1])


@pytest.fixture(scope="module")
def playing(prompt: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playing]:
    directory = tmp_path_factory.mktemp("playing")
    with ExitStack() as stack:
        played = Playing(PrivatePostgres(directory), PrivateRedis(directory), directory)
        for part, service in (
            (played.running_database, played.database),
            (played.running_redis, played.redis),
        ):
            stack.enter_context(part)
            part.enter_context(service.running())
        played.prepare()
        stack.enter_context(engines(played.installation, 1, REPLAY_DIR=str(directory)))
        (server,) = stack.enter_context(played.installation.serve(1))
        played.server = server
        wait_until(lambda: stored(played.installation, SYMBOL).seq > 0)
        yield played


def test_emptied_redis_is_filled_again(playing: Playing, tell: Tell) -> None:
    with playing.redis.client as client:
        client.flushall()
    tell(f"messages arrived again {playing.is_heard():.2f} s after it was emptied")
    playing.goes_on()
    playing.is_heard()


def test_candles_are_written_although_redis_was_paused(playing: Playing, tell: Tell) -> None:
    with playing.redis.paused():
        playing.goes_on(2 * A_SECOND)
    tell(f"messages arrived again {playing.is_heard():.2f} s after the pause")


def test_candles_are_written_although_redis_was_killed(playing: Playing, tell: Tell) -> None:
    playing.redis.kill()
    playing.goes_on()
    playing.running_redis.close()
    playing.running_redis.enter_context(playing.redis.running())
    tell(f"messages arrived again {playing.is_heard():.2f} s after it returned empty")
    playing.goes_on()
    playing.is_heard()


def test_ticks_flow_while_the_database_is_down_and_are_written_afterwards(
    playing: Playing, tell: Tell
) -> None:
    before, number = playing.stored().ticks, last_number(playing.redis.url)
    playing.running_database.close()
    wait_until(lambda: last_number(playing.redis.url) > number + 10)
    playing.running_database.enter_context(playing.database.running())
    took = wait_until(lambda: playing.stored().ticks > before)
    tell(f"candles were written again {took:.2f} s after its start")
    playing.goes_on()
    playing.is_heard()


def test_control_expected_candles_depend_on_every_tick(playing: Playing) -> None:
    """The control: one tick fewer or one more would have been seen."""
    found = playing.stored()

    assert found.are_right()
    assert not found._replace(ticks=found.ticks - 1).are_right()
    assert not found._replace(ticks=found.ticks + 1).are_right()
