"""An instrument as plain values: what quotes, candles and signals need to know of it."""

import re
from typing import Literal

import msgspec

from .hours import TradingHours

TEST_SYMBOL = "TEST"
"""The demo's instrument that clients test against."""


class InstrumentFacts(msgspec.Struct, frozen=True):
    id: int
    symbol: str
    name: str
    type: str
    pip_size: float
    contract_size: float
    margin_rate: float
    min_lot: float
    max_lot: float
    digits: int
    volume_kind: str
    order_flow_source: str
    stale_after_s: int
    outlier_percent: float
    """Of the last price: one that is further away may be refused. 0 refuses none."""
    source: str
    fallback: str
    active: bool
    hours: TradingHours
    timezone: str
    sessions: str
    holidays: str
    is_offered: bool = True
    """Active, and its data may be handed on."""
    is_withheld: bool = False
    """Its data may not be handed on, active or not."""


# In which unit a market counts what a trade gained.
Unit = Literal["pips", "points", "percent"]
METAL = re.compile("X(AU|AG|PT|PD)")


def counted_in(symbol: str, type: str) -> Unit:
    """Currencies and metals in pips, indices in points of the price, everything else in percent."""
    if type == "forex" or METAL.match(symbol):
        return "pips"
    return "points" if type == "index" else "percent"
