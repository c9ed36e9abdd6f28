"""What OANDA does besides what every venue does, over a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from instruments.models import Instrument
from market.engine.feeds.oanda_lines import LONGEST_LINE
from tests.factories import make_instrument

from .fake_oanda import ACCOUNT, TOKEN, FakeOanda
from .inlets import RecordingInlet, Waits, running
from .venue import NOON_MS

NAMES = {"EURUSD": "EUR_USD", "XAUUSD": "XAU_USD"}


@pytest.fixture
async def oanda() -> AsyncIterator[FakeOanda]:
    async with FakeOanda() as fake:
        yield fake


async def test_prices_of_all_instruments_are_asked_for_at_once(oanda: FakeOanda) -> None:
    async with running(oanda.make_feed(), RecordingInlet()):
        await oanda.visited()

    (request,) = oanda.http.requests
    assert request.target == (
        f"/v3/accounts/{ACCOUNT}/pricing/stream?instruments=EUR_USD%2CXAU_USD&snapshot=true"
    )
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["accept-datetime-format"] == "RFC3339"


async def test_line_may_come_in_two_chunks(oanda: FakeOanda) -> None:
    inlet, line = RecordingInlet(), oanda.quote("EUR_USD", 1.08, 1.0802, NOON_MS) + b"\n"

    async with running(oanda.make_feed(), inlet):
        await oanda.visited()
        await oanda.write(line[:50])
        await oanda.write(line[50:] + line[:20])
        await oanda.write(line[20:])
        await inlet.until_ticks(2)

    assert inlet.refused == {}


async def test_weekend_is_not_silence(oanda: FakeOanda) -> None:
    inlet = RecordingInlet()
    closed = oanda.quote("EUR_USD", 1.08, 1.0802, NOON_MS).replace(b'"tradeable":true', b'"tradeable":false')

    async with running(oanda.make_feed(), inlet):
        await oanda.visited()
        await oanda.send(closed, oanda.heartbeat(), oanda.quote("EUR_USD", 1.08, 1.0802, NOON_MS))
        await inlet.until_ticks(1)

    assert inlet.order == ["missing", "alive", "alive", "ticks"]


async def test_stream_without_heartbeats_is_given_up(oanda: FakeOanda) -> None:
    inlet = RecordingInlet()

    async with running(oanda.make_feed(silent_s=0.05), inlet):
        await oanda.visited(2)

    assert inlet.losses[0] == "OANDA was silent for 0.05 s"


async def test_stream_that_ends_is_begun_anew(oanda: FakeOanda) -> None:
    inlet = RecordingInlet()

    async with running(oanda.make_feed(), inlet):
        await oanda.visited()
        await oanda.close()
        await oanda.visited(2)

    assert inlet.losses == ["OANDA ended the stream"]


async def test_line_without_end_is_a_loss(oanda: FakeOanda) -> None:
    inlet = RecordingInlet()

    async with running(oanda.make_feed(), inlet):
        await oanda.visited()
        await oanda.write(b"x" * (LONGEST_LINE + 1))
        await oanda.visited(2)

    assert inlet.losses == ["OANDA sends no lines: a line has more than 65536 bytes"]


async def test_instrument_that_the_account_lacks_does_not_cost_the_others(oanda: FakeOanda) -> None:
    inlet = RecordingInlet()
    oanda.unknown = {"XAU_USD"}

    async with running(oanda.make_feed(), inlet):
        visit = await oanda.visited(names=1)
        await oanda.close()
        await oanda.visited(2, names=1)

    assert visit.asked == {"EUR_USD"}
    assert inlet.refused == {"unknown_symbol": 1}
    assert [request.path.rsplit("/")[-1] for request in oanda.http.requests] == [
        "stream",
        "instruments",
        "stream",
        "stream",
    ]


async def test_account_that_lacks_all_instruments_is_told_and_asked_seldom(oanda: FakeOanda) -> None:
    inlet, waits = RecordingInlet(), Waits()
    oanda.unknown = set(NAMES.values())

    async with running(oanda.make_feed(sleep=waits, chance=lambda: 0.0, longest_retry_s=60.0), inlet):
        await inlet.until(lambda: bool(waits.seconds))

    assert inlet.losses == ["OANDA has none of the instruments; see their sources"]
    assert waits.seconds == [60.0]


@pytest.fixture
def instrument(db: None, request: pytest.FixtureRequest) -> Instrument:
    return make_instrument("EURUSD", volume_kind=request.param)


@pytest.mark.parametrize(("instrument", "volume"), [("ticks", 3), ("traded", 0)], indirect=["instrument"])
@pytest.mark.parametrize(("price", "close"), [("bid", 1.08), ("mid", 1.58)])
async def test_history_is_what_live_candles_are_made_of_and_asked_for_with_the_token(
    oanda: FakeOanda, price: str, close: float, instrument: Instrument, volume: int
) -> None:
    inlet = RecordingInlet(missing={"EURUSD": NOON_MS - 60_000})
    oanda.bars = {"EUR_USD": [(NOON_MS - 60_000, 1.08)]}
    feed = oanda.make_feed(candle_price=price)
    feed.now_ms = lambda: NOON_MS

    async with running(feed, inlet):
        await inlet.until(lambda: bool(inlet.backfilled))

    (bar,) = inlet.backfilled["EURUSD"]
    assert (bar.opened_ms, bar.close, bar.volume, bar.ask_low) == (NOON_MS - 60_000, close, volume, 2.08)
    assert f"backfill {price}" in inlet.order
    assert oanda.http.requests[-1].headers["authorization"] == f"Bearer {TOKEN}"
