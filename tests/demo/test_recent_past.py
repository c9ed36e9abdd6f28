"""Where the demo's past ends the engine goes on, with its order flow and its last quotes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from core.times import MINUTE_MS, iso_ms
from demo.market import seed_recent
from demo.past import make_past
from demo.seeding import seed_instruments
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts
from market.models import Candle, LastQuote, UnfinishedPast
from market.prices import PriceBar
from market.prices.order_flow import FlowState, OrderFlow
from market.prices.quotes import Prices
from market.prices.records import Tick
from market.simulated_past import FLOW_MINUTES, fill_gap, last_quote, older_flows, older_rows, recent_rows
from market.store import read_flows
from tests.factories import make_instrument
from tests.market.ticking import NOON_MS, make_facts, ms

pytestmark = pytest.mark.django_db
NOW_MS = ms("2026-11-18T12:00")


def test_running_sum_of_the_day_goes_on_in_the_engine(settings: Any) -> None:
    settings.DEMO = True
    bitcoin = make_instrument("BTCUSD", type="crypto", volume_kind="traded", order_flow_source="trades")
    seed_recent(NOW_MS, lambda text: None)
    *_, before, last = read_flows(bitcoin.pk, 500)
    assert last.opened_ms == NOW_MS - MINUTE_MS
    assert last.cumulative_delta == pytest.approx(before.cumulative_delta + last.delta)
    flow = OrderFlow(5)
    flow.restore(msgspec.convert(LastQuote.objects.get(pk=bitcoin.pk).flow_state, FlowState))
    assert flow.minute(last.opened_ms) == last


@pytest.mark.served
@pytest.mark.parametrize("clock", ["00:01", "12:00", "23:30"])
def test_day_has_no_hole_whenever_the_demo_begins(settings: Any, clock: str) -> None:
    settings.DEMO = True
    bitcoin = make_instrument("BTCUSD", type="crypto", volume_kind="traded", order_flow_source="trades")
    now_ms = ms(f"2026-11-18T{clock}")
    seed_recent(now_ms, lambda text: None)
    (past,) = UnfinishedPast.objects.all()
    make_past(catalogue.get("BTCUSD"), past)
    opened = [flow.opened_ms for flow in read_flows(bitcoin.pk, 10_000)]
    assert opened == list(range(opened[0], now_ms, MINUTE_MS))
    assert opened[0] < now_ms - 24 * 60 * MINUTE_MS


def test_older_minutes_have_it_from_a_midnight_on() -> None:
    facts = make_facts()
    flows = older_flows(facts, older_rows(facts, ms("2026-11-18T00:00")))
    assert FLOW_MINUTES <= len(flows) < FLOW_MINUTES + 24 * 60
    first = flows[0].minute
    assert first.opened_ms % (24 * 60 * MINUTE_MS) == 0
    assert first.cumulative_delta == first.delta


# The made-up past ends where its last quote says, whatever candles are made of.
# On a Wednesday everything but the stocks of New York is open; on Friday night hardly anything is.
MOMENTS = {"open": ms("2026-11-18T12:00"), "closed": ms("2026-11-20T23:30")}


@pytest.fixture(params=["bid", "mid"])
def candle_price(request: pytest.FixtureRequest, settings: Any) -> str:
    settings.DEMO = True
    settings.CANDLE_PRICE = request.param
    return str(request.param)


def quoted(facts: InstrumentFacts, until_ms: int) -> Tick:
    quote = last_quote(facts, until_ms)
    assert quote is not None
    return quote


def last_minute(facts: InstrumentFacts, until_ms: int, basis: str) -> PriceBar | None:
    minutes = [
        bar for _, timeframe, bar, of in recent_rows(facts, until_ms) if (timeframe, of) == ("1m", basis)
    ]
    return minutes[-1] if minutes else None


@pytest.mark.served
@pytest.mark.parametrize("until_ms", MOMENTS.values(), ids=MOMENTS)
def test_last_quote_of_every_instrument_is_the_close_of_its_last_candle(
    candle_price: str, until_ms: int
) -> None:
    seed_instruments(lambda text: None)
    catalogue.load_now()
    prices, differing, compared = Prices(candle_price), {}, 0
    for facts in catalogue.active():
        minute, quote = last_minute(facts, until_ms, candle_price), quoted(facts, until_ms)
        if minute is not None:
            compared += 1
            if prices.price_of(quote, facts) != minute.close:
                differing[facts.symbol] = iso_ms(quote.time_ms), quote.bid, quote.ask, minute.close
            assert minute.opened_ms <= quote.time_ms < minute.opened_ms + MINUTE_MS
            assert minute.ask_low <= quote.ask <= minute.ask_high
            assert quote.bid < quote.ask
    assert compared > 20
    assert not differing


def test_last_quote_after_a_gap_is_the_close_of_its_last_minute(candle_price: str) -> None:
    make_instrument("EURUSD")
    catalogue.load_now()
    facts, until_ms = catalogue.get("EURUSD"), NOON_MS + 10 * MINUTE_MS
    assert fill_gap(facts, NOON_MS - MINUTE_MS, NOON_MS, until_ms)
    last = Candle.objects.filter(timeframe="1m").latest("opened_at")
    assert last.basis == candle_price
    assert float(last.close) == Prices(candle_price).price_of(quoted(facts, until_ms), facts)
