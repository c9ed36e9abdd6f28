"""What the market offers now, in the exact numbers that signals are reckoned with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from instruments.catalogue import InstrumentFacts
from market import services as market
from market.models import LastQuote

from .prices import price

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Quoted(NamedTuple):
    bid: Decimal
    ask: Decimal
    time_ms: int
    epoch: str = ""
    seq: int = 0
    """Where the tick stands in its stream; 0 where nobody knows."""

    @property
    def at(self) -> datetime:
        return moment(self.time_ms)


def moment(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms // 1000, UTC).replace(microsecond=time_ms % 1000 * 1000)


def ms(at: datetime) -> int:
    """The first whole millisecond that is not before it."""
    return -((EPOCH - at) // timedelta(milliseconds=1))


def current(symbol: str) -> Quoted | None:
    """From this process' board; a command has none, and asks the engine's last checkpoint."""
    quote = market.quote(symbol)
    if quote is not None:
        return Quoted(price(quote.bid), price(quote.ask), quote.time_ms, market.epoch(), quote.seq)
    row = LastQuote.objects.select_related("instrument").filter(instrument__symbol=symbol).first()
    if row is None or row.bid is None or row.ask is None or row.quoted_at is None:
        return None
    bid, ask = (round(price, row.instrument.digits) for price in (row.bid, row.ask))
    return Quoted(bid, ask, ms(row.quoted_at), market.epoch_written(), row.seq)


def state(facts: InstrumentFacts, quote: Quoted | None, now_ms: int) -> str:
    """open, closed or stale: as the board says it, and stale as soon as the engine is not heard. Others may
    know a newer price then."""
    if not facts.hours.is_open(now_ms):
        return "closed"
    is_old = quote is None or now_ms - quote.time_ms > facts.stale_after_s * 1000
    is_stale = is_old or not market.is_heard()
    return "stale" if is_stale else "open"
