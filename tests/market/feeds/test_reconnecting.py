"""How every adapter loses its venue, comes back, fills its gaps and stops."""

from __future__ import annotations

import asyncio

import pytest
from pytest_django import Settings

from core.times import MINUTE_MS
from market.engine.feeds.feed import FeedPace
from tests.market.feeds.venues.fakes.venue import NOON_MS, FakeVenue
from tests.passing import LoopTime
from tests.patience import PATIENCE_S

from .receivers import RecordingReceiver, running


class Waits(list[float]):
    """Instead of waiting between two tries."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)
        await asyncio.sleep(0)


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_lost_connection_is_told_opened_again_and_subscribed_again(venue: FakeVenue, how: str) -> None:
    receiver, name = RecordingReceiver(), venue.symbols["EURUSD"]

    async with running(venue.make_feed(), receiver):
        first = await venue.visited()
        await (venue.close() if how == "close" else venue.reset())
        await receiver.until_lost()
        second = await venue.visited(2)
        await venue.send(venue.quote(name, 1.08, 1.0802, NOON_MS))
        await receiver.until_ticks(1)

    assert second.asked == first.asked == set(venue.symbols.values())
    assert venue.feed_class.venue in receiver.losses[0]


async def test_silence_on_a_half_open_connection_is_a_loss(venue: FakeVenue) -> None:
    receiver = RecordingReceiver()

    async with running(venue.make_feed(silent_s=0.3, probe_s=0.05, close_s=0.05), receiver):
        await venue.visited()
        venue.hush()
        await receiver.until_lost()

    assert receiver.losses[0] == f"{venue.feed_class.venue} was silent for 0.3 s"


async def test_silence_with_a_probe_unanswered_is_a_loss_as_soon_as_a_minute_would_close(
    trading_venue: FakeVenue, settings: Settings
) -> None:
    venue, receiver, settings.CLOSE_GRACE_MS = trading_venue, RecordingReceiver(), 30

    async with running(venue.make_feed(silent_s=PATIENCE_S, probe_s=0.01), receiver):
        await venue.visited()
        venue.hush()
        await receiver.until_lost()

    why = "was silent, and left a probe unanswered for 0.03 s"
    assert receiver.losses[0] == f"{venue.feed_class.venue} {why}"


async def test_without_any_grace_only_a_probe_that_was_sent_can_be_unanswered(
    trading_venue: FakeVenue, settings: Settings
) -> None:
    venue, receiver, settings.CLOSE_GRACE_MS = trading_venue, RecordingReceiver(), 0
    time = LoopTime()

    async with running(venue.make_feed(silent_s=100 * PATIENCE_S, probe_s=2 * PATIENCE_S), receiver):
        await venue.visited()
        for _ in range(3):
            time.passed_s += 2 * PATIENCE_S
            heard = receiver.takes
            await venue.send(venue.heartbeat())
            await receiver.until_takes(heard + 1)

    assert receiver.losses == []


async def test_heartbeats_keep_a_connection_without_ticks(venue: FakeVenue) -> None:
    receiver, time = RecordingReceiver(), LoopTime()

    async with running(venue.make_feed(silent_s=PATIENCE_S, probe_s=100 * PATIENCE_S), receiver):
        await venue.visited()
        for _ in range(3):
            time.passed_s += 0.6 * PATIENCE_S
            heard = receiver.takes
            await venue.send(venue.heartbeat())
            await receiver.until_takes(heard + 1)

    assert receiver.losses == []


async def test_what_a_connection_said_is_forgotten_with_it(trading_venue: FakeVenue) -> None:
    venue, name = trading_venue, trading_venue.symbols["EURUSD"]
    receiver = RecordingReceiver()

    async with running(venue.make_feed(), receiver):
        await venue.visited()
        await venue.send(venue.quote(name, 1.08, 1.0802, NOON_MS), venue.trade(name, 1.08, 1, 1, NOON_MS, 7))
        await receiver.until_ticks(2)
        await venue.close()
        await venue.visited(2)
        await venue.send(venue.trade(name, 1.2, 1, 1, NOON_MS, 90), venue.quote(name, 1.3, 1.4, NOON_MS + 1))
        ticks = await receiver.until_ticks(4)

    before = [(1.08, None), (1.08, 1.08)]
    assert [(tick.bid, tick.price) for tick in ticks] == [*before, (1.3, 1.2), (1.3, None)]
    assert receiver.refused == {}


@pytest.mark.parametrize(
    ("steady_s", "waited"), [(0.0, [1.0, 1.0, 1.0]), (60.0, [1.0, 2.0, 4.0])], ids=["held", "broke at once"]
)
async def test_wait_is_short_again_only_after_a_connection_that_held(
    venue: FakeVenue, steady_s: float, waited: list[float]
) -> None:
    waits = Waits()
    feed = venue.make_feed(
        steady_s=steady_s, first_retry_s=1.0, longest_retry_s=60.0, sleep=waits, chance=lambda: 0.0
    )
    receiver = RecordingReceiver()

    async with running(feed, receiver):
        for visit in range(1, 4):
            await venue.visited(visit)
            await venue.close()
            await receiver.until_lost(visit)

    assert waits == waited


def missing_three_minutes(venue: FakeVenue) -> RecordingReceiver:
    name = venue.symbols["EURUSD"]
    venue.bars[name] = [(NOON_MS - minutes * MINUTE_MS, 1.0 + minutes / 10) for minutes in (3, 2, 1)]
    return RecordingReceiver({"EURUSD": NOON_MS - 3 * MINUTE_MS, "ELSEWHERE": NOON_MS - 3 * MINUTE_MS})


async def test_missing_minutes_are_filled_before_the_first_live_tick(venue_with_history: FakeVenue) -> None:
    venue = venue_with_history
    receiver, feed = missing_three_minutes(venue), venue.make_feed()
    feed.now_ms = lambda: NOON_MS + 500
    venue.sent_after_asking = [venue.quote(venue.symbols["EURUSD"], 1.08, 1.0802, NOON_MS)]

    async with running(feed, receiver):
        await receiver.until_ticks(1)

    minutes = receiver.backfilled["EURUSD"]
    assert [(m.opened_ms, m.open) for m in minutes] == venue.bars[venue.symbols["EURUSD"]]
    seen = [what for what in receiver.order if what.startswith(("backfill", "ticks"))]
    assert seen == [f"backfill {feed.basis}", "ticks"]


@pytest.mark.parametrize("how", ["fails", "takes too long"])
async def test_history_that_cannot_be_had_does_not_hold_up_the_live_feed(
    venue_with_history: FakeVenue, how: str
) -> None:
    venue = venue_with_history
    venue.has_broken_history = how == "fails"
    receiver = missing_three_minutes(venue)
    feed = venue.make_feed(history_s=600.0 if how == "fails" else 0.0)
    feed.now_ms = lambda: NOON_MS + 500

    async with running(feed, receiver):
        await venue.visited()
        await venue.send(venue.quote(venue.symbols["EURUSD"], 1.08, 1.0802, NOON_MS))
        await receiver.until_ticks(1)

    assert len(venue.history_asked) <= 1
    assert (receiver.backfilled, receiver.losses) == ({}, [])


async def test_cancelled_feed_says_goodbye_and_leaves_nothing_running(venue: FakeVenue) -> None:
    receiver, before = RecordingReceiver(), asyncio.all_tasks()

    async with running(venue.make_feed(), receiver):
        visit = await venue.visited()
        assert asyncio.all_tasks() > before
    await venue.left(visit)

    assert visit.is_closed_well
    assert receiver.losses == []
    # The fake's own tasks end with the connection, a moment later.
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*asyncio.all_tasks() - before, return_exceptions=True)


async def test_feed_can_be_cancelled_while_it_waits_for_its_next_try(venue: FakeVenue) -> None:
    receiver, feed = RecordingReceiver(), venue.make_feed(first_retry_s=3600.0, longest_retry_s=3600.0)
    await venue.stop()

    async with running(feed, receiver) as task:
        await receiver.until_lost()

    assert task.cancelled()


def test_wait_doubles_up_to_a_minute_and_chance_shortens_it_by_up_to_a_half() -> None:
    waits = {0: 1.0, 1: 2.0, 5: 32.0, 6: 60.0, 7: 60.0, 10**9: 60.0}
    assert {failures: FeedPace(chance=lambda: 0.0).retry_s(failures) for failures in waits} == waits
    assert (FeedPace(chance=lambda: 0.5).retry_s(2), FeedPace(chance=lambda: 1.0).retry_s(2)) == (3.0, 2.0)


def test_venue_can_answer_a_probe_before_it_is_silent_and_binance_hears_at_most_five_a_second() -> None:
    assert FeedPace().silent_s >= 2 * FeedPace().probe_s
    assert 1 / FeedPace().say_gap_s < 5
