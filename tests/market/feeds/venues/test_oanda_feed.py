"""What OANDA does besides what every venue does, over a real socket; the samples of its lines are its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from instruments.models import Instrument
from market.engine.venues.oanda import LONGEST_LINE, Lines, LineTooLong, OandaReader, venue_symbol
from market.engine.venues.time_base import AGREEING, ANSWERED_MS
from market.engine.venues.venue_quotes import to_ms
from market.prices.records import StandingQuote, Tick
from tests.factories import make_instrument
from tests.market.feeds.receivers import RecordingReceiver, Waits, running

from .fakes.oanda import ACCOUNT, TOKEN, FakeOanda
from .fakes.venue import NOON_MS

NAMES = {"EURUSD": "EUR_USD", "XAUUSD": "XAU_USD"}


@pytest.fixture
async def oanda() -> AsyncIterator[FakeOanda]:
    async with FakeOanda() as fake:
        yield fake


async def test_prices_of_all_instruments_are_asked_for_at_once(oanda: FakeOanda) -> None:
    async with running(oanda.make_feed(), RecordingReceiver()):
        await oanda.visited()

    (request,) = oanda.http.requests
    assert request.target == (
        f"/v3/accounts/{ACCOUNT}/pricing/stream?instruments=EUR_USD%2CXAU_USD&snapshot=true"
    )
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["accept-datetime-format"] == "RFC3339"


async def test_line_may_come_in_two_chunks(oanda: FakeOanda) -> None:
    receiver, line = RecordingReceiver(), oanda.quote("EUR_USD", 1.08, 1.0802, NOON_MS) + b"\n"

    async with running(oanda.make_feed(), receiver):
        await oanda.visited()
        await oanda.write(line[:50])
        await oanda.write(line[50:] + line[:20])
        await oanda.write(line[20:])
        await receiver.until_ticks(2)

    assert receiver.refused == {}


async def test_stream_that_is_always_slow_is_no_clock_that_is_ahead(oanda: FakeOanda) -> None:
    """Else signals would be filled at prices that publishers with a quicker line know."""
    receiver, feed, oanda.late_ms = RecordingReceiver(), oanda.make_feed(), 30_000

    async with running(feed, receiver):
        await oanda.visited()
        late_ms = feed.now_ms() - oanda.late_ms
        await oanda.send(*[oanda.heartbeat()] * AGREEING, oanda.quote("EUR_USD", 1.08, 1.0802, late_ms))
        await receiver.until_ticks(1)

    assert receiver.source_ms
    assert receiver.ahead_ms <= ANSWERED_MS + 1_000


async def test_weekend_is_not_silence(oanda: FakeOanda) -> None:
    receiver = RecordingReceiver()
    closed = oanda.quote("EUR_USD", 1.08, 1.0802, NOON_MS).replace(b'"tradeable":true', b'"tradeable":false')

    async with running(oanda.make_feed(), receiver):
        await oanda.visited()
        await oanda.send(closed, oanda.heartbeat(), oanda.quote("EUR_USD", 1.08, 1.0802, NOON_MS))
        await receiver.until_ticks(1)

    assert receiver.order == ["missing", "alive", "alive", "alive", "ticks"]


@pytest.mark.parametrize(
    ("how", "loss"),
    [
        ("silent", "OANDA was silent for 0.05 s"),
        ("ended", "OANDA ended the stream"),
        ("a line without end", "OANDA sends no lines: a line has more than 65536 bytes"),
    ],
)
async def test_stream_that_is_lost_is_begun_anew(oanda: FakeOanda, how: str, loss: str) -> None:
    receiver = RecordingReceiver()
    async with running(oanda.make_feed(silent_s=0.05 if how == "silent" else 600.0), receiver):
        await oanda.visited()
        if how == "ended":
            await oanda.close()
        elif how == "a line without end":
            await oanda.write(b"x" * (LONGEST_LINE + 1))
        await oanda.visited(2)
    assert receiver.losses[0] == loss


async def test_instrument_that_the_account_lacks_does_not_cost_the_others(oanda: FakeOanda) -> None:
    receiver = RecordingReceiver()
    oanda.unknown = {"XAU_USD"}

    async with running(oanda.make_feed(), receiver):
        visit = await oanda.visited(names=1)
        await oanda.close()
        await oanda.visited(2, names=1)

    assert visit.asked == {"EUR_USD"}
    assert receiver.refused == {"unknown_symbol": 1}
    paths = [request.path.rsplit("/")[-1] for request in oanda.http.requests]
    assert paths == ["stream", "instruments", "stream", "stream"]


async def test_account_that_lacks_all_instruments_is_told_and_asked_seldom(oanda: FakeOanda) -> None:
    receiver, waits = RecordingReceiver(), Waits()
    oanda.unknown = set(NAMES.values())

    async with running(oanda.make_feed(sleep=waits, chance=lambda: 0.0, longest_retry_s=60.0), receiver):
        await receiver.until(lambda: bool(waits.seconds))

    assert receiver.losses == ["OANDA has none of the instruments; see their sources"]
    assert waits.seconds == [60.0]


@pytest.fixture
def instrument(db: None, request: pytest.FixtureRequest) -> Instrument:
    return make_instrument("EURUSD", volume_kind=request.param)


@pytest.mark.parametrize(("instrument", "volume"), [("ticks", 3), ("traded", 0)], indirect=["instrument"])
@pytest.mark.parametrize(("price", "close"), [("bid", 1.08), ("mid", 1.58)])
async def test_history_is_what_live_candles_are_made_of_and_asked_for_with_the_token(
    oanda: FakeOanda, price: str, close: float, instrument: Instrument, volume: int
) -> None:
    receiver = RecordingReceiver(missing={"EURUSD": NOON_MS - 60_000})
    oanda.bars = {"EUR_USD": [(NOON_MS - 60_000, 1.08)]}
    feed = oanda.make_feed(candle_price=price)
    feed.now_ms = lambda: NOON_MS

    async with running(feed, receiver):
        await receiver.until(lambda: bool(receiver.backfilled))

    (bar,) = receiver.backfilled["EURUSD"]
    assert (bar.opened_ms, bar.close, bar.volume, bar.ask_low) == (NOON_MS - 60_000, close, volume, 2.08)
    assert f"backfill {price}" in receiver.order
    assert oanda.http.requests[-1].headers["authorization"] == f"Bearer {TOKEN}"


PRICE = (
    b'{"type":"PRICE","instrument":"EUR_USD","time":"2016-10-27T08:38:45.664613867Z","status":"tradeable",'
    b'"bids":[{"price":"1.09177","liquidity":10000000},{"price":"1.09175","liquidity":10000000}],'
    b'"asks":[{"price":"1.09188","liquidity":10000000},{"price":"1.09190","liquidity":10000000}],'
    b'"closeoutBid":"1.09173","closeoutAsk":"1.09192"}'
)
HEARTBEAT = b'{"type":"HEARTBEAT","time":"2016-10-27T08:38:44.327443673Z"}'
BIDS = b'[{"price":"1.09177","liquidity":10000000},{"price":"1.09175","liquidity":10000000}]'
ASKS = b'[{"price":"1.09188","liquidity":10000000},{"price":"1.09190","liquidity":10000000}]'


def read(line: bytes) -> list[Tick]:
    def refuse(reason: str, what: str, name: str = "") -> None:
        raise AssertionError(reason)

    return OandaReader({"EURUSD": "EUR_USD"}, refuse).read(line, received_ms=0)


def test_price_becomes_a_tick_of_the_best_bid_and_ask_whichever_way_it_says_tradeable() -> None:
    new = PRICE.replace(b'"status":"tradeable"', b'"tradeable":true')
    for line in (PRICE, new):
        assert read(line) == [StandingQuote("EURUSD", 1.09177, 1.09188, 1_477_557_525_664)]


@pytest.mark.parametrize(
    ("part", "instead"),
    [
        (BIDS, b"[]"),
        (ASKS, b"[]"),
        (b'"status":"tradeable"', b'"status":"non-tradeable"'),
        (b'"status":"tradeable"', b'"status":"invalid"'),
        (b'"status":"tradeable"', b'"tradeable":false'),
        (b'"type":"PRICE"', b'"type":"SOMETHING_NEW"'),
    ],
)
def test_price_nobody_can_trade_at_is_but_a_sign_of_life(part: bytes, instead: bytes) -> None:
    assert part in PRICE
    assert read(PRICE.replace(part, instead)) == read(HEARTBEAT) == []


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2016-10-27T08:38:45.999999999Z", 1_477_557_525_999),
        ("2016-10-27T08:38:45Z", 1_477_557_525_000),
        ("2016-10-27T10:38:45.5+02:00", 1_477_557_525_500),
    ],
)
def test_time_is_truncated_to_milliseconds(text: str, time_ms: int) -> None:
    assert to_ms(text) == time_ms


@pytest.mark.parametrize("text", ["", "2016-10-27T08:38:45", "soon", "1477557525"])
def test_time_that_is_none_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="."):
        to_ms(text)


@pytest.mark.parametrize("size", [1, 2, 7, 61, 62, 63, 500])
def test_lines_are_the_same_wherever_chunks_end(size: int) -> None:
    stream, lines = b"\n".join([HEARTBEAT, PRICE, HEARTBEAT, b""]), Lines()

    cut = [line for at in range(0, len(stream), size) for line in lines.add(stream[at : at + size])]

    assert cut == [HEARTBEAT, PRICE, HEARTBEAT]


def test_empty_lines_are_none_and_one_without_end_is_not_waited_for() -> None:
    lines = Lines()
    assert lines.add(b"\n\r\n \nx\n") == [b"x"]
    lines.add(b"x" * LONGEST_LINE)
    with pytest.raises(LineTooLong):
        lines.add(b"x")


def test_two_currencies_are_joined_by_an_underscore() -> None:
    names = {"EURUSD": "EUR_USD", "XAUUSD": "XAU_USD"}
    own = {name: name for name in ("US30", "DE30_EUR", "NAS100")}
    assert {name: venue_symbol(name) for name in (*names, *own)} == names | own
