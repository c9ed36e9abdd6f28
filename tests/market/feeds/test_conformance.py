"""What every adapter does with what its venue says, whatever the protocol."""

from __future__ import annotations

from market.prices.records import Tick
from tests.market.feeds.venues.fakes.venue import NOON_MS, FakeVenue

from .receivers import RecordingReceiver, running


async def heard(venue: FakeVenue, messages: list[bytes], ticks: int) -> RecordingReceiver:
    """What becomes of these messages, up to so many ticks."""
    receiver = RecordingReceiver()
    async with running(venue.make_feed(), receiver):
        await venue.visited()
        await venue.send(*messages)
        await receiver.until_ticks(ticks)
    return receiver


async def test_quotes_come_under_our_names(venue: FakeVenue) -> None:
    usual, own = venue.symbols.values()

    receiver = await heard(
        venue, [venue.quote(usual, 1.08, 1.0802, NOON_MS), venue.quote(own, 2_400.5, 2_401, NOON_MS)], 2
    )

    assert [(tick.symbol, tick.bid, tick.ask) for tick in receiver.ticks] == [
        ("EURUSD", 1.08, 1.0802),
        ("XAUUSD", 2_400.5, 2_401),
    ]


async def test_two_of_our_symbols_may_follow_one_of_the_venues(venue: FakeVenue) -> None:
    receiver, name = RecordingReceiver(), venue.symbols["EURUSD"]

    async with running(venue.make_feed({"EURUSD": name, "EURX": name}), receiver):
        await venue.visited(names=1)
        await venue.send(venue.quote(name, 1.08, 1.0802, NOON_MS))
        ticks = await receiver.until_ticks(2)

    assert [tick.symbol for tick in ticks] == ["EURUSD", "EURX"]


async def test_quote_has_the_venues_time_or_that_of_its_receipt(venue: FakeVenue) -> None:
    receiver, name = RecordingReceiver(), venue.symbols["EURUSD"]
    feed = venue.make_feed()
    feed.now_ms = lambda: NOON_MS + 70

    async with running(feed, receiver):
        await venue.visited()
        await venue.send(venue.quote(name, 1.08, 1.0802, NOON_MS))
        (tick,) = await receiver.until_ticks(1)

    assert tick.time_ms == (NOON_MS if venue.gives_quote_times else NOON_MS + 70)


async def test_trade_carries_its_price_size_side_and_number(trading_venue: FakeVenue) -> None:
    venue, name = trading_venue, trading_venue.symbols["EURUSD"]

    receiver = await heard(
        venue,
        [
            venue.quote(name, 1.08, 1.0802, NOON_MS),
            venue.trade(name, 1.0802, 2.5, 1, NOON_MS + 60_000_000, 7),
            venue.trade(name, 1.0800, 0.25, -1, NOON_MS + 60_000_001, 8),
        ],
        3,
    )

    assert receiver.ticks[1:] == [
        Tick("EURUSD", 1.08, 1.0802, receiver.ticks[1].time_ms, 2.5, 1, 1.0802, 7),
        Tick("EURUSD", 1.08, 1.0802, receiver.ticks[2].time_ms, 0.25, -1, 1.08, 8),
    ]


async def test_trade_before_the_first_quote_is_dropped_without_a_fault(trading_venue: FakeVenue) -> None:
    venue, name = trading_venue, trading_venue.symbols["EURUSD"]

    receiver = await heard(
        venue,
        [venue.trade(name, 1.0802, 2.5, 1, NOON_MS, 7), venue.quote(name, 1.08, 1.0802, NOON_MS)],
        1,
    )

    assert [tick.price for tick in receiver.ticks] == [None]
    assert receiver.refused == {}


async def test_hole_in_the_numbers_of_trades_is_counted_and_nothing_dropped(trading_venue: FakeVenue) -> None:
    venue, name = trading_venue, trading_venue.symbols["EURUSD"]
    quote = venue.quote(name, 1.08, 1.0802, NOON_MS)

    receiver = await heard(
        venue, [quote, *[venue.trade(name, 1.08, 1, 1, NOON_MS, seq) for seq in (7, 8, 12, 13)]], 5
    )

    assert [tick.source_seq for tick in receiver.ticks[1:]] == [7, 8, 12, 13]
    assert receiver.refused == {"gap": 1}


async def test_duplicates_and_old_times_are_left_to_the_engine(venue: FakeVenue) -> None:
    name = venue.symbols["EURUSD"]
    first, earlier = (
        venue.quote(name, 1.08, 1.0802, NOON_MS, 5),
        venue.quote(name, 1.07, 1.0702, NOON_MS - 90_000, 4),
    )

    receiver = await heard(venue, [first, first, earlier], 3)

    assert [tick.bid for tick in receiver.ticks] == [1.08, 1.08, 1.07]
    if venue.numbers_quotes:
        assert [tick.source_seq for tick in receiver.ticks] == [5, 5, 4]
    if venue.gives_quote_times:
        assert [tick.time_ms for tick in receiver.ticks] == [NOON_MS, NOON_MS, NOON_MS - 90_000]
    assert receiver.refused == {}


async def test_old_and_repeated_trades_are_left_to_the_engine(trading_venue: FakeVenue) -> None:
    venue, name = trading_venue, trading_venue.symbols["EURUSD"]
    repeated = venue.trade(name, 1.08, 1, 1, NOON_MS - 90_000, 6)

    receiver = await heard(venue, [venue.quote(name, 1.08, 1.0802, NOON_MS), repeated, repeated], 3)

    assert [(tick.time_ms, tick.source_seq) for tick in receiver.ticks[1:]] == [(NOON_MS - 90_000, 6)] * 2
    assert receiver.refused == {}


async def test_time_does_not_go_back_where_two_channels_are_out_of_step(trading_venue: FakeVenue) -> None:
    venue, name, receiver = trading_venue, trading_venue.symbols["EURUSD"], RecordingReceiver()
    feed = venue.make_feed()
    feed.now_ms = lambda: NOON_MS

    async with running(feed, receiver):
        await venue.visited()
        await venue.send(
            venue.quote(name, 1.08, 1.0802, NOON_MS), venue.trade(name, 1.08, 1, 1, NOON_MS - 900, 7)
        )
        await receiver.until_ticks(2)

    assert [tick.time_ms for tick in receiver.ticks] == [NOON_MS, NOON_MS]


async def test_no_crossed_quote_leaves_the_adapter(venue: FakeVenue) -> None:
    name = venue.symbols["EURUSD"]
    crossed = venue.quote(name, 1.09, 1.08, NOON_MS)
    good = venue.quote(name, 1.08, 1.08, NOON_MS + 1)

    receiver = await heard(venue, [crossed, good, crossed, good], 2)

    assert [(tick.bid, tick.ask) for tick in receiver.ticks] == [(1.08, 1.08)] * 2
    assert receiver.refused == {"crossed": 2}


async def test_message_without_ticks_is_a_sign_of_life(venue: FakeVenue) -> None:
    receiver = RecordingReceiver()

    async with running(venue.make_feed(), receiver):
        await venue.visited()
        await venue.send(venue.heartbeat(), venue.heartbeat(), venue.quote(venue.symbols["EURUSD"], 1, 2, 3))
        await receiver.until_ticks(1)

    assert receiver.order[-3:] == ["alive", "alive", "ticks"]


async def test_malformed_messages_are_counted_and_the_good_ones_between_them_arrive(venue: FakeVenue) -> None:
    good = venue.quote(venue.symbols["EURUSD"], 1.08, 1.0802, NOON_MS)
    faults = len(venue.malformed)

    receiver = await heard(venue, [part for bad in venue.malformed for part in (bad, good)], faults)

    assert receiver.refused == {"malformed": faults}
    assert receiver.losses == []


async def test_hostile_messages_are_counted_and_the_good_ones_between_them_arrive(venue: FakeVenue) -> None:
    good = venue.quote(venue.symbols["EURUSD"], 1.08, 1.0802, NOON_MS)
    faults = len(venue.hostile)

    receiver = await heard(venue, [part for bad in venue.hostile for part in (bad, good)], faults)

    assert receiver.refused == {"malformed": faults}
    assert receiver.losses == []


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
    assert receiver.losses == []
