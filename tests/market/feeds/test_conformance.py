"""What every adapter does with what its venue says, whatever the protocol."""

from __future__ import annotations

import pytest

from market.prices.records import StandingQuote, Tick
from tests.market.feeds.venues.fakes.venue import NOON_MS, FakeVenue

from .receivers import RecordingReceiver, running


async def heard(
    venue: FakeVenue, messages: list[bytes], ticks: int, now_ms: int | None = None
) -> RecordingReceiver:
    """What becomes of these messages, up to so many ticks."""
    receiver, feed = RecordingReceiver(), venue.make_feed()
    if now_ms is not None:
        feed.now_ms = lambda: now_ms
    async with running(feed, receiver):
        await venue.visited()
        await venue.send(*messages)
        await receiver.until_ticks(ticks)
    assert receiver.losses == []
    return receiver


async def test_quotes_come_under_our_names_with_the_venues_time_or_that_of_receipt(venue: FakeVenue) -> None:
    usual, own = venue.symbols.values()
    quotes = [venue.quote(usual, 1.08, 1.0802, NOON_MS), venue.quote(own, 2_400.5, 2_401, NOON_MS)]
    receiver = await heard(venue, quotes, 2, now_ms=NOON_MS + 70)
    at_ms = NOON_MS if venue.gives_quote_times else NOON_MS + 70
    assert [(tick.symbol, tick.bid, tick.ask, tick.time_ms) for tick in receiver.ticks] == [
        ("EURUSD", 1.08, 1.0802, at_ms),
        ("XAUUSD", 2_400.5, 2_401, at_ms),
    ]


async def test_two_of_our_symbols_may_follow_one_of_the_venues(venue: FakeVenue) -> None:
    receiver, name = RecordingReceiver(), venue.symbols["EURUSD"]
    async with running(venue.make_feed({"EURUSD": name, "EURX": name}), receiver):
        await venue.visited(names=1)
        await venue.send(venue.quote(name, 1.08, 1.0802, NOON_MS))
        ticks = await receiver.until_ticks(2)
    assert [tick.symbol for tick in ticks] == ["EURUSD", "EURX"]


async def test_trade_carries_its_price_size_side_and_number(trading_venue: FakeVenue) -> None:
    venue, name, later_ms = trading_venue, trading_venue.symbols["EURUSD"], NOON_MS + 60_000_000
    messages = [
        venue.quote(name, 1.08, 1.0802, NOON_MS),
        venue.trade(name, 1.0802, 2.5, 1, later_ms, 7),
        venue.trade(name, 1.0800, 0.25, -1, later_ms + 1, 8),
    ]
    receiver = await heard(venue, messages, 3)
    assert receiver.ticks[1:] == [
        Tick("EURUSD", 1.08, 1.0802, receiver.ticks[1].time_ms, 2.5, 1, 1.0802, 7),
        Tick("EURUSD", 1.08, 1.0802, receiver.ticks[2].time_ms, 0.25, -1, 1.08, 8),
    ]


async def test_trade_before_the_first_quote_waits_for_it(trading_venue: FakeVenue) -> None:
    venue, name = trading_venue, trading_venue.symbols["EURUSD"]
    messages = [venue.trade(name, 1.0802, 2.5, 1, NOON_MS, 7), venue.quote(name, 1.08, 1.0802, NOON_MS)]
    receiver = await heard(venue, messages, 2)
    assert [(tick.bid, tick.price) for tick in receiver.ticks] == [(1.08, 1.0802), (1.08, None)]
    assert receiver.refused == {}


async def test_hole_in_the_numbers_of_trades_is_counted_and_nothing_dropped(trading_venue: FakeVenue) -> None:
    venue, name = trading_venue, trading_venue.symbols["EURUSD"]
    trades = [venue.trade(name, 1.08, 1, 1, NOON_MS, seq) for seq in (7, 8, 12, 13)]
    receiver = await heard(venue, [venue.quote(name, 1.08, 1.0802, NOON_MS), *trades], 5)
    assert [tick.source_seq for tick in receiver.ticks[1:]] == [7, 8, 12, 13]
    assert receiver.refused == {"gap": 1}


async def test_duplicates_and_old_times_are_left_to_the_engine(venue: FakeVenue) -> None:
    name = venue.symbols["EURUSD"]
    first = venue.quote(name, 1.08, 1.0802, NOON_MS, 5)
    earlier = venue.quote(name, 1.07, 1.0702, NOON_MS - 90_000, 4)
    receiver = await heard(venue, [first, first, earlier], 3)
    assert [tick.bid for tick in receiver.ticks] == [1.08, 1.08, 1.07]
    if venue.numbers_quotes:
        assert [tick.source_seq for tick in receiver.ticks] == [5, 5, 4]
    if venue.gives_quote_times:
        assert [tick.time_ms for tick in receiver.ticks] == [NOON_MS, NOON_MS, NOON_MS - 90_000]
    assert receiver.refused == {}


@pytest.mark.parametrize("late_ms", [90_000, 900])
async def test_old_trades_are_left_to_the_engine_unless_two_channels_are_but_out_of_step(
    trading_venue: FakeVenue, late_ms: int
) -> None:
    venue, name = trading_venue, trading_venue.symbols["EURUSD"]
    repeated = venue.trade(name, 1.08, 1, 1, NOON_MS - late_ms, 6)
    quote = venue.quote(name, 1.08, 1.0802, NOON_MS)
    receiver = await heard(venue, [quote, repeated, repeated], 3, now_ms=NOON_MS)
    quoted, *trades = receiver.ticks
    source_ms = NOON_MS - late_ms if late_ms > 5_000 else quoted.time_ms
    assert [(tick.time_ms, tick.source_seq) for tick in trades] == [(source_ms, 6)] * 2
    assert receiver.refused == {}


async def test_quote_that_stands_when_a_connection_begins_is_present_with_its_own_time(
    venue: FakeVenue,
) -> None:
    standing, name = venue.standing("EURUSD", 1.07, 1.0702, NOON_MS - 90_000), venue.symbols["EURUSD"]
    receiver = await heard(venue, [*standing, venue.quote(name, 1.08, 1.0802, NOON_MS)], len(standing) + 1)
    assert receiver.ticks[:-1] == [StandingQuote("EURUSD", 1.07, 1.0702, NOON_MS - 90_000)] * len(standing)
    assert type(receiver.ticks[-1]) is Tick


async def test_no_crossed_quote_leaves_the_adapter(venue: FakeVenue) -> None:
    name = venue.symbols["EURUSD"]
    crossed, good = (venue.quote(name, bid, 1.08, NOON_MS) for bid in (1.09, 1.08))
    receiver = await heard(venue, [crossed, good, crossed, good], 2)
    assert [(tick.bid, tick.ask) for tick in receiver.ticks] == [(1.08, 1.08)] * 2
    assert receiver.refused == {"crossed": 2}


async def test_message_without_ticks_is_a_sign_of_life(venue: FakeVenue) -> None:
    quote = venue.quote(venue.symbols["EURUSD"], 1, 2, 3)
    receiver = await heard(venue, [venue.heartbeat(), venue.heartbeat(), quote], 1)
    assert receiver.order[-3:] == ["alive", "alive", "ticks"]


@pytest.mark.parametrize("kind", ["malformed", "hostile"])
async def test_bad_messages_are_counted_and_the_good_ones_between_them_arrive(
    venue: FakeVenue, kind: str
) -> None:
    good = venue.quote(venue.symbols["EURUSD"], 1.08, 1.0802, NOON_MS)
    faults: list[bytes] = getattr(venue, kind)
    receiver = await heard(venue, [part for bad in faults for part in (bad, good)], len(faults))
    assert receiver.refused == {"malformed": len(faults)}


async def test_what_was_not_asked_for_makes_no_tick(venue: FakeVenue) -> None:
    good = venue.quote(venue.symbols["EURUSD"], 1.08, 1.0802, NOON_MS)
    stray = venue.quote(venue.symbols["EURUSD"].replace("EUR", "GBP"), 1.25, 1.26, NOON_MS)
    receiver = await heard(venue, [stray, good], 1)
    assert [tick.symbol for tick in receiver.ticks] == ["EURUSD"]
    assert receiver.refused == {"unknown_symbol": 1}


async def test_unknown_symbol_does_not_stop_the_others(venue: FakeVenue) -> None:
    receiver, name = RecordingReceiver(), venue.symbols["EURUSD"]
    venue.unknown = {venue.symbols["XAUUSD"]}

    async with running(venue.make_feed(), receiver):
        await venue.visited(names=1)
        await venue.send(venue.quote(name, 1.08, 1.0802, NOON_MS))
        await receiver.until_ticks(1)
        await receiver.until(lambda: receiver.refused["unknown_symbol"] > 0)

    assert receiver.refused == {"unknown_symbol": 1}
    assert receiver.losses == []
    (complaint,) = receiver.complaints
    assert complaint.startswith(f"{venue.symbols['XAUUSD']} is not served: ")
    assert receiver.unserved == ["XAUUSD"]


async def test_burst_arrives_whole_and_in_order(venue: FakeVenue) -> None:
    name = venue.symbols["EURUSD"]
    burst = [venue.quote(name, 1.08 + i / 1e5, 2.0, NOON_MS + i, i + 1) for i in range(20_000)]
    receiver = await heard(venue, burst, 20_000)
    assert [round((tick.bid - 1.08) * 1e5) for tick in receiver.ticks] == list(range(20_000))
