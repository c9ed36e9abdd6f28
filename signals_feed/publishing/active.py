"""A publisher's active signals, for themselves: what each would give if it were closed now."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import UUID

from accounts.models import User
from instruments.catalogue import catalogue
from signals_feed.checking import close_requested
from signals_feed.exits import exit_price, result
from signals_feed.figures import gain_text, in_r, tone
from signals_feed.figures import price as price_text
from signals_feed.models import Signal

from .actions import current_quote


def active_signals(user: User) -> list[tuple[Signal, dict[str, Any]]]:
    own = Signal.objects.active().filter(user=user).for_feed().select_related("instrument")
    signals = list(own)
    asked = close_requested([signal.pk for signal in signals if signal.rules > 1])
    return [(signal, result_now(signal) | state_of(signal, asked)) for signal in signals]


def state_of(signal: Signal, to_close: Collection[UUID]) -> dict[str, Any]:
    """In words, with the look of its badge; the fill unless it was filled as it was published."""
    if signal.cancel_reason:
        state, badge = "being cancelled", "rolled"
    elif signal.pk in to_close:
        state, badge = "asked to close", "rolled"
    else:
        state, badge = ("waiting for its fill", "") if signal.waits_for_fill else ("active", "active")
    shown = {"state": state, "badge": badge}
    if signal.rules == 1:
        return shown
    price = signal.fill_price
    return shown | {"fill": "waiting" if price is None else price_text(price, signal.instrument.digits)}


def result_now(signal: Signal) -> dict[str, Any]:
    """The result of closing it now; empty without a fill or a quote, or if that may not be shown."""
    facts = catalogue.find(signal.instrument.symbol)
    quote = current_quote(signal.instrument.symbol)
    if signal.paid is None or quote is None or facts is None or not facts.is_offered:
        return {}
    price = exit_price(signal.direction, quote.bid, quote.ask)
    # Of entry and fill it is the worse already.
    terms = signal.entry, signal.stop_loss, signal.paid
    earned = result(signal.direction, *terms, price, signal.instrument.pip_size)
    return {
        "price": price_text(price, signal.instrument.digits),
        "gain": gain_text(signal.instrument, earned.pnl, earned.pnl_percent),
        "r": in_r(earned.pnl_r),
        "tone": tone(earned.pnl_r),
    }
