"""What a venue sends while its history of the minutes before is still awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from core.times import MINUTE_MS
from market.engine.feeds.feed import AT_ONCE, HeldTicks, Unheard
from market.engine.venues.venue_history import VenueTrade
from market.prices.records import Tick
from tests.market.feeds.venues.fakes.kraken import AT_FIRST, FakeKraken
from tests.market.feeds.venues.fakes.venue import NOON_MS, FakeVenue

from .receivers import RecordingReceiver, running

NO_MESSAGE = b"{"


class Filling:
    """A feed that lacks three minutes of a venue whose history does not come yet, and the feed's clock."""

    def __init__(self, venue: FakeVenue) -> None:
        self.venue, self.name, self.other = venue, venue.symbols["EURUSD"], venue.symbols["XAUUSD"]
        self.now_ms = NOON_MS + 500
        self.receiver = RecordingReceiver({"EURUSD": NOON_MS - 3 * MINUTE_MS})
        self.filled = f"backfill {venue.feed_class.basis}"
        venue.may_tell_history.clear()
        venue.bars[self.name] = [(NOON_MS - minutes * MINUTE_MS, 1.0) for minutes in (3, 2, 1)]

    @asynccontextmanager
    async def visited(self, **pace: Any) -> AsyncIterator[None]:
        # The waits are bounded by the test's patience and by nothing else.
        feed = self.venue.make_feed(history_s=600.0, silent_s=600.0, **pace)
        feed.now_ms = lambda: self.now_ms
        async with running(feed, self.receiver):
            await self.venue.visited()
            yield

    @asynccontextmanager
    async def awaited(self, **pace: Any) -> AsyncIterator[None]:
        """The history is asked for."""
        async with self.visited(**pace):
            await self.venue.asked_for_history()
            yield

    def quote(self, bid: float, after_ms: int, seq: int = 1) -> bytes:
        return self.venue.quote(self.name, bid, 1.5, NOON_MS + after_ms, seq)

    async def says(self, *messages: bytes) -> None:
        """What follows makes no sense, which is counted at once: so these were read."""
        known = self.receiver.refused["malformed"]
        await self.venue.send(*messages, NO_MESSAGE)
        await self.receiver.until(lambda: self.receiver.refused["malformed"] > known)

    @property
    def seen(self) -> list[str]:
        wanted = ("backfill", "ticks", "alive", "lost")
        return [what for what in self.receiver.order if what.startswith(wanted)]


@pytest.fixture
def filling(venue_with_history: FakeVenue) -> Filling:
    return Filling(venue_with_history)


async def test_what_comes_while_history_is_awaited_has_the_time_of_its_receipt(filling: Filling) -> None:
    async with filling.awaited():
        await filling.says(filling.quote(1.08, 400))
        filling.now_ms += 9_000
        await filling.says(filling.venue.clock(), filling.quote(1.09, 9_400, 2))
        assert filling.seen == []
        filling.now_ms += 900
        filling.venue.may_tell_history.set()
        ticks = await filling.receiver.until_ticks(2)

    own_ms = NOON_MS if filling.venue.gives_quote_times else NOON_MS + 100
    assert [(tick.bid, tick.time_ms - own_ms) for tick in ticks] == [(1.08, 400), (1.09, 9_400)]
    assert filling.seen == [filling.filled, "ticks"]


async def test_venue_is_not_asked_while_no_minute_has_ended(filling: Filling) -> None:
    filling.receiver = RecordingReceiver({"EURUSD": NOON_MS - 30_000})
    async with filling.visited():
        await filling.venue.send(filling.quote(1.08, 400))
        # No answer of the history is allowed to come: nothing waits for one.
        await filling.receiver.until_ticks(1)
    assert filling.seen[0] == filling.filled


async def test_signs_of_life_wait_for_the_history_too(filling: Filling) -> None:
    async with filling.awaited():
        await filling.says(filling.venue.heartbeat())
        assert filling.seen == []
        filling.venue.may_tell_history.set()
        await filling.receiver.until_takes(1)
    assert filling.seen[:2] == [filling.filled, "alive"]


async def test_minute_that_ends_while_history_is_awaited_is_asked_for_as_well(filling: Filling) -> None:
    async with filling.awaited():
        filling.now_ms += MINUTE_MS
        filling.venue.bars[filling.name].append((NOON_MS, 1.5))
        filling.venue.may_tell_history.set()
        await filling.receiver.until(lambda: filling.seen.count(filling.filled) == 2)
    assert filling.receiver.backfilled["EURUSD"][-1].opened_ms == NOON_MS
    assert len(filling.venue.history_asked) == 2


async def test_connection_that_is_lost_while_history_is_awaited_is_told_at_once(filling: Filling) -> None:
    async with filling.awaited():
        await filling.says(filling.quote(1.08, 400))
        await filling.venue.close()
        await filling.receiver.until_lost()
        await filling.venue.visited(2)
        await filling.venue.asked_for_history(2)
        filling.venue.may_tell_history.set()
        await filling.says(filling.quote(1.09, 500, 2))
        ticks = await filling.receiver.until_ticks(2)

    # What the first connection said goes behind the minutes that the second has filled.
    assert [tick.bid for tick in ticks] == [1.08, 1.09]
    assert filling.seen == ["lost", filling.filled, "ticks"]


@pytest.mark.parametrize("is_lost", [True, False], ids=["lost", "ended"])
async def test_what_has_no_history_to_wait_for_is_handed_on_before_the_connection_ends(
    filling: Filling, is_lost: bool
) -> None:
    async with filling.awaited():
        await filling.says(filling.venue.quote(filling.other, 2_000.0, 2_001.0, NOON_MS + 400))
        assert filling.seen == []
        if is_lost:
            await filling.venue.close()
            await filling.receiver.until_lost()
    assert [tick.symbol for tick in filling.receiver.ticks] == ["XAUUSD"]
    assert filling.seen[:2] == (["ticks", "lost"] if is_lost else ["ticks"])


async def test_no_more_is_read_than_may_be_held_until_the_history_has_come(filling: Filling) -> None:
    quotes = [filling.quote(1.08 + n / 100, n, n + 1) for n in range(4)]
    async with filling.awaited(held_at_most=3):
        await filling.says(*quotes[:2])
        await filling.venue.send(quotes[2], NO_MESSAGE, quotes[3])
        # The control is above: what may be read is read within a few turns, as it is on this machine already.
        for _ in range(100):
            await asyncio.sleep(0)
        assert filling.receiver.refused == {"malformed": 1}
        filling.venue.may_tell_history.set()
        ticks = await filling.receiver.until_ticks(4)

    assert [round(tick.bid, 2) for tick in ticks] == [1.08, 1.09, 1.1, 1.11]
    assert filling.receiver.refused == {"malformed": 2}


async def test_ticks_that_come_while_others_are_handed_on_stay_behind_them() -> None:
    receiver = RecordingReceiver()
    ticks = [Tick("EURUSD", 1.0, 2.0, time_ms) for time_ms in range(3 * AT_ONCE)]
    held = HeldTicks(receiver, len(ticks))
    held.take(ticks[:-2])

    releasing = asyncio.create_task(held.release())
    await receiver.until_takes(1)
    held.take(ticks[-2:-1])
    await releasing
    held.take(ticks[-1:])

    assert receiver.ticks == ticks
    assert receiver.takes == 4


async def test_trades_that_open_minutes_lack_are_asked_for_before_the_history_and_what_fails_is_told(
    trading_venue: FakeVenue, caplog: pytest.LogCaptureFixture
) -> None:
    filling = Filling(trading_venue)
    filling.receiver.lacking = {"EURUSD": Unheard(NOON_MS - MINUTE_MS, 6), "ELSEWHERE": Unheard(0, 0)}
    trading_venue.may_tell_history.set()
    trading_venue.trades[filling.name] = [VenueTrade(7, NOON_MS - 9, 1.08, 2.5, -1)]
    async with filling.visited():
        await filling.receiver.until(lambda: bool(filling.receiver.backfilled))
    assert filling.receiver.healed == {"EURUSD": [Tick("EURUSD", 1.08, 1.08, NOON_MS - 9, 2.5, -1, 1.08, 7)]}
    assert [what for what in filling.receiver.order if what in ("healed", filling.filled)] == [
        *("healed", filling.filled)
    ]
    trading_venue.has_broken_history = True
    async with filling.visited():
        await filling.receiver.until(lambda: "no history of EURUSD" in caplog.text)


@pytest.mark.parametrize(("known", "since_ms", "asked"), [(6, 0, 0), (5, 0, 1), (0, 8, 0), (0, 7, 1)])
async def test_kraken_is_asked_for_trades_only_if_those_that_it_tells_at_first_do_not_go_back_far_enough(
    known: int, since_ms: int, asked: int
) -> None:
    trades = [VenueTrade(n, NOON_MS - MINUTE_MS + n, 1.08, 2.5, -1) for n in range(1, 7 + AT_FIRST)]
    async with FakeKraken() as kraken:
        filling = Filling(kraken)
        filling.receiver.lacking = {"EURUSD": Unheard(NOON_MS - MINUTE_MS + since_ms, known)}
        kraken.may_tell_history.set()
        kraken.trades[filling.name] = trades
        async with filling.visited():
            await filling.receiver.until(lambda: bool(filling.receiver.healed))
        assert len([path for path in kraken.history_asked if "Trades" in path]) == asked
    wanted = [each.tick("EURUSD") for each in trades if each.number > known and each.number >= since_ms]
    assert filling.receiver.healed["EURUSD"] == wanted
