"""What a venue sends while its history of the minutes before is still awaited."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from core.times import MINUTE_MS
from market.engine.feeds.feed import AT_ONCE, HeldTicks
from market.engine.feeds.venues.venue_feed import VenueFeed
from market.prices.records import Tick
from tests.market.feeds.venues.fakes.venue import NOON_MS, FakeVenue

from .receivers import RecordingReceiver, running

NO_MESSAGE = b"{"


@pytest.fixture
def venue(venue_with_history: FakeVenue) -> FakeVenue:
    return venue_with_history


class Filling:
    """A feed that lacks three minutes of a venue whose history does not come yet, and the feed's clock."""

    def __init__(self, venue: FakeVenue) -> None:
        self.venue, self.name = venue, venue.symbols["EURUSD"]
        self.now_ms = NOON_MS + 500
        self.receiver = RecordingReceiver({"EURUSD": NOON_MS - 3 * MINUTE_MS})
        venue.may_tell_history.clear()
        venue.bars[self.name] = [(NOON_MS - minutes * MINUTE_MS, 1.0) for minutes in (3, 2, 1)]

    def make_feed(self, **pace: Any) -> VenueFeed:
        # The waits are bounded by the test's patience and by nothing else.
        feed = self.venue.make_feed(history_s=600.0, silent_s=600.0, **pace)
        feed.now_ms = lambda: self.now_ms
        return feed

    async def says(self, *messages: bytes) -> None:
        """What follows makes no sense, which is counted at once: so these were read."""
        known = self.receiver.refused["malformed"]
        await self.venue.send(*messages, NO_MESSAGE)
        await self.receiver.until(lambda: self.receiver.refused["malformed"] > known)

    @property
    def seen(self) -> list[str]:
        wanted = ("backfill", "ticks", "alive", "lost")
        return [what for what in self.receiver.order if what.startswith(wanted)]


async def test_what_comes_while_history_is_awaited_has_the_time_of_its_receipt(venue: FakeVenue) -> None:
    filling = Filling(venue)

    async with running(filling.make_feed(), filling.receiver):
        await venue.visited()
        await venue.asked_for_history()
        await filling.says(venue.quote(filling.name, 1.08, 1.0802, NOON_MS + 400, 1))
        filling.now_ms += 9_000
        await filling.says(venue.quote(filling.name, 1.09, 1.0902, NOON_MS + 9_400, 2))
        assert filling.seen == []
        filling.now_ms += 900
        venue.may_tell_history.set()
        ticks = await filling.receiver.until_ticks(2)

    own = 0 if venue.gives_quote_times else 100
    assert [(tick.bid, tick.time_ms) for tick in ticks] == [
        (1.08, NOON_MS + 400 + own),
        (1.09, NOON_MS + 9_400 + own),
    ]
    assert filling.seen == [f"backfill {venue.feed_class.basis}", "ticks"]


async def test_venue_is_not_asked_while_no_minute_has_ended(venue: FakeVenue) -> None:
    filling = Filling(venue)
    filling.receiver = RecordingReceiver({"EURUSD": NOON_MS - 30_000})

    async with running(filling.make_feed(), filling.receiver):
        await venue.visited()
        await venue.send(venue.quote(filling.name, 1.08, 1.0802, NOON_MS + 400, 1))
        # No answer of the history is allowed to come: nothing waits for one.
        await filling.receiver.until_ticks(1)

    assert filling.seen[0] == f"backfill {venue.feed_class.basis}"


async def test_signs_of_life_wait_for_the_history_too(venue: FakeVenue) -> None:
    filling = Filling(venue)

    async with running(filling.make_feed(), filling.receiver):
        await venue.visited()
        await venue.asked_for_history()
        await filling.says(venue.heartbeat())
        assert filling.seen == []
        venue.may_tell_history.set()
        await filling.receiver.until_takes(1)

    assert filling.seen[:2] == [f"backfill {venue.feed_class.basis}", "alive"]


async def test_minute_that_ends_while_history_is_awaited_is_asked_for_as_well(venue: FakeVenue) -> None:
    filling = Filling(venue)

    async with running(filling.make_feed(), filling.receiver):
        await venue.visited()
        await venue.asked_for_history()
        filling.now_ms += MINUTE_MS
        venue.bars[filling.name].append((NOON_MS, 1.5))
        venue.may_tell_history.set()
        await venue.asked_for_history(2)
        await filling.receiver.until(lambda: filling.seen.count(f"backfill {venue.feed_class.basis}") == 2)

    assert filling.receiver.backfilled["EURUSD"][-1].opened_ms == NOON_MS
    assert len(venue.history_asked) == 2


async def test_connection_that_is_lost_while_history_is_awaited_is_told_at_once(venue: FakeVenue) -> None:
    filling = Filling(venue)

    async with running(filling.make_feed(), filling.receiver):
        await venue.visited()
        await venue.asked_for_history()
        await filling.says(venue.quote(filling.name, 1.08, 1.0802, NOON_MS + 400, 1))
        await venue.close()
        await filling.receiver.until_lost()
        await venue.visited(2)
        await venue.asked_for_history(2)
        venue.may_tell_history.set()
        await filling.says(venue.quote(filling.name, 1.09, 1.0902, NOON_MS + 500, 2))
        ticks = await filling.receiver.until_ticks(2)

    # What the first connection said goes behind the minutes that the second has filled.
    assert [tick.bid for tick in ticks] == [1.08, 1.09]
    assert filling.seen == ["lost", f"backfill {venue.feed_class.basis}", "ticks"]


async def test_what_has_no_history_to_wait_for_is_handed_on_before_the_connection_is_lost(
    venue: FakeVenue,
) -> None:
    filling, other = Filling(venue), venue.symbols["XAUUSD"]

    async with running(filling.make_feed(), filling.receiver):
        await venue.visited()
        await venue.asked_for_history()
        await filling.says(venue.quote(other, 2_000.0, 2_001.0, NOON_MS + 400, 1))
        await venue.close()
        await filling.receiver.until_lost()

    assert [tick.symbol for tick in filling.receiver.ticks] == ["XAUUSD"]
    assert filling.seen[:2] == ["ticks", "lost"]


async def test_feed_that_is_ended_hands_on_what_has_no_history_to_wait_for(venue: FakeVenue) -> None:
    filling, other = Filling(venue), venue.symbols["XAUUSD"]

    async with running(filling.make_feed(), filling.receiver):
        await venue.visited()
        await venue.asked_for_history()
        await filling.says(venue.quote(other, 2_000.0, 2_001.0, NOON_MS + 400, 1))
        assert filling.seen == []

    assert [tick.symbol for tick in filling.receiver.ticks] == ["XAUUSD"]


async def test_no_more_is_read_than_may_be_held_until_the_history_has_come(venue: FakeVenue) -> None:
    filling = Filling(venue)
    quotes = [venue.quote(filling.name, 1.08 + n / 100, 1.5, NOON_MS + n, n + 1) for n in range(4)]

    async with running(filling.make_feed(held_at_most=3), filling.receiver):
        await venue.visited()
        await venue.asked_for_history()
        await filling.says(*quotes[:2])
        await venue.send(quotes[2], NO_MESSAGE, quotes[3])
        # The control is above: what may be read is read within a few turns, as it is on this machine already.
        for _ in range(100):
            await asyncio.sleep(0)
        assert filling.receiver.refused == {"malformed": 1}
        venue.may_tell_history.set()
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
