"""What the engine is fed with: so many instruments, half of them with trades, nothing random."""

from __future__ import annotations

from instruments.catalogue import InstrumentFacts, catalogue
from market.prices.records import Tick
from tests.factories import make_instrument

DIGITS = 5
# Some pips up and down, more than a market moves: candles, order flow and absorption all have work.
WAVE = tuple((step * step % 41 - step % 19) / 100_000 for step in range(997))


def make_instruments(many: int) -> list[InstrumentFacts]:
    """Rows in the database, so that what becomes of their ticks is written."""
    for place in range(many):
        traded = {"volume_kind": "traded", "order_flow_source": "trades"} if place % 2 else {}
        make_instrument(f"BENCH{place:03}", source="push", **traded)
    return catalogue.active()


def make_tick(facts: InstrumentFacts, number: int, time_ms: int) -> Tick:
    """The number counts the ticks of all instruments."""
    bid = round(1.1 + WAVE[number % len(WAVE)], DIGITS)
    ask = round(bid + 0.00003, DIGITS)
    if facts.order_flow_source != "trades":
        return Tick(facts.symbol, bid, ask, time_ms, 0.0, 0, None, number)
    side = 1 if number % 3 else -1
    return Tick(facts.symbol, bid, ask, time_ms, number % 7 + 1.0, side, ask if side > 0 else bid, number)
