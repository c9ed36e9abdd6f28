"""The form of a signal's entries in the ledger: their fields, and how values are written in them. It needs
exits.py and the standard library alone.

Entries of before say less: their `publish` has no `rules`, there is no `arm`, `fill` or `close_request`, and
the signal counts as filled at the quote of its publication."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from .exits import Minute, Tick

Payload = Mapping[str, Any]
Item = Tick | Minute

RULES = 2
PUBLISH, ARM, FILL, CLOSE, CANCEL = "publish", "arm", "fill", "close", "cancel"
CLOSE_REQUEST, ARCHIVE = "close_request", "archive"
OWN_TIME = {PUBLISH: "published_at", ARM: "at", CLOSE_REQUEST: "at", CANCEL: "cancelled_at"}
TICK, CANDLE, FIRST_AFTER_GAP = "tick", "candle", "first_after_gap"
SIMULATED, VENUES = ("demo", "replay"), ("kraken", "binance", "oanda")
MINUTES, MOST_FEEDS = "minutes", 80

# Why a signal was cancelled. These follow from the record.
DERIVED = NOT_ARMED, NO_TICK, BEYOND_TARGET = "not_armed", "no_tick", "beyond_target"
# Any other cause takes effect at its own arm, and these at the last price before it. If staff's cancellation
# waits already, they have an arm of their own.
AT_LAST = KIND_CHANGED, DEACTIVATED, WITHHELD = "kind_changed", "deactivated", "withheld"

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# What entries by these rules say besides what those of before do. Entries by the old rules may say `written`,
# and a `publish` its `number` and `demo`. Prices and times are text, but for `…_ms`.
# An `arm` is `for` a fill, a close_request or a cancel; where its `ahead_ms` is missing it is 0.
FIELDS = {
    PUBLISH: ("rules", "written", "number", "demo", "rank_unit", "pip_size", "stale_ms"),
    ARM: ("for", "number", "at", "epoch", "seq", "wait_ms", "unsettled_ms", "written"),
    FILL: ("fill_price", "evidence", "written"),
    CLOSE_REQUEST: ("at", "written"),
    CANCEL: ("cause", "unsettled_ms", "written"),
    CLOSE: ("rules", "written"),
    ARCHIVE: ("day", "manifest_sha256", "written"),
}
# And their evidence of a tick: accepted_ms, feed, simulated, settled, unsettled_ms. In that of a `close` the
# feed is followed, after a plus each, by what else than ticks of venues judged the signal since its fill.


def ms_of(text: str) -> int:
    """The first whole millisecond that is not before it."""
    return -((EPOCH - datetime.fromisoformat(text)) // timedelta(milliseconds=1))


def iso(time_ms: int) -> str:
    return (EPOCH + timedelta(milliseconds=time_ms)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def plain_number(value: Decimal) -> str:
    """As the ledger writes it: without an exponent, trailing zeros or a signed zero."""
    return f"{value.normalize() + 0:f}"


def plain(value: Decimal | None) -> str | None:
    return None if value is None else plain_number(value)


def item_of(shown: Payload) -> Item:
    """The tick or the minute of an evidence."""
    if shown["source"] == CANDLE:
        prices = (shown.get(name) for name in Minute._fields[1:])
        return Minute(ms_of(shown["at"]), *(None if price is None else Decimal(price) for price in prices))
    return tick_of(shown)


def tick_of(shown: Payload) -> Tick:
    known = {name: shown[name] for name in Tick._fields[3:] if name in shown}
    if "feed" in known:
        known["feed"] = known["feed"].partition("+")[0]
    return Tick(Decimal(shown["bid"]), Decimal(shown["ask"]), ms_of(shown["at"]), **known)


def feeds_of(feed: str, others: Iterable[str]) -> str:
    return "+".join((feed, *sorted({*others} - {feed})))[:MOST_FEEDS]


def evidence_of(item: Item, source: str, rule: str, **extremes: Decimal) -> dict[str, Any]:
    shown = {"source": source, "rule": rule, "epoch": "", "seq": 0}
    if isinstance(item, Tick):
        shown |= {"at": iso(item.time_ms), "epoch": item.epoch, "seq": item.seq, "feed": item.feed}
        shown |= {"accepted_ms": item.accepted_ms, "simulated": item.feed in SIMULATED}
        shown |= {"settled": item.settled, "unsettled_ms": item.unsettled_ms}
        prices = {"bid": item.bid, "ask": item.ask}
    else:
        shown["at"] = iso(item.opened_ms)
        prices = {name: price for name, price in item._asdict().items() if name != "opened_ms" and price}
    return shown | {name: plain(price) for name, price in (prices | extremes).items()}
