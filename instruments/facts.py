"""An instrument as plain values, and the feeds that it may name as its source. Simulated and real prices
never mix."""

import re
from functools import lru_cache
from typing import Literal

import msgspec

from instruments.hours import TradingHours

DEMO, REPLAY, PUSH = "demo", "replay", "push"
IMPORTED = "import"
"""The source of minutes that come from files: it is no feed, and its prices were never quoted."""
SIMULATED = frozenset({DEMO, REPLAY})
VENUES = ("kraken", "oanda", "binance")
FEEDS = (DEMO, REPLAY, *VENUES, PUSH)
"""All that an instrument may name as its source."""


# Asked for every candle that is written.
@lru_cache(maxsize=256)
def is_simulated(feed: str) -> bool:
    """By its name, as an instrument gives it (`kraken:BTC/USD`) or a candle keeps it (`demo+replay`)."""
    return feed.partition("+")[0].partition(":")[0] in SIMULATED


def default_feed(is_demo: bool) -> str:
    """The feed of an instrument that names no source."""
    return DEMO if is_demo else PUSH


# Asked of each instrument every second.
@lru_cache(maxsize=1024)
def feeds_of(source: str, fallback: str, default: str) -> tuple[str, ...]:
    """The feeds of an instrument by the names they send under, without a venue's own symbol. A fallback of
    the other kind is dropped, so that simulated prices are never taken for real ones."""
    first = source or default
    named = [first]
    if fallback and is_simulated(fallback) == is_simulated(first):
        named.append(fallback)
    kinds = [name if name.startswith("push") else name.partition(":")[0] for name in named]
    return tuple(dict.fromkeys(kinds))


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
    """Active, and its data may be passed on."""
    is_withheld: bool = False
    """Its data must not be passed on, active or not."""


# In which unit a market counts what a trade gained.
Unit = Literal["pips", "points", "percent"]
METAL = re.compile("X(AU|AG|PT|PD)")


def counted_in(symbol: str, type: str) -> Unit:
    """Currencies and metals in pips, indices in points of the price, everything else in percent."""
    if type == "forex" or METAL.match(symbol):
        return "pips"
    return "points" if type == "index" else "percent"
