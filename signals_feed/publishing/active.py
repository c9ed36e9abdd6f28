"""A publisher's active signals, for themselves: what each would give if it were closed now."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from instruments.catalogue import catalogue
from signals_feed.exits import exit_price, result
from signals_feed.figures import gain_text, in_r, tone
from signals_feed.figures import price as price_text
from signals_feed.models import Signal

from .actions import current_quote


def active_signals(user: User) -> list[tuple[Signal, dict[str, Any]]]:
    own = Signal.objects.active().filter(user=user).for_feed().select_related("instrument")
    return [(signal, result_now(signal)) for signal in own]


def result_now(signal: Signal) -> dict[str, Any]:
    """The result of closing it now; empty if there is no quote, or none that may be shown."""
    facts = catalogue.find(signal.instrument.symbol)
    quote = current_quote(signal.instrument.symbol)
    if quote is None or facts is None or not facts.is_offered:
        return {}
    price = exit_price(signal.direction, quote.bid, quote.ask)
    terms = signal.entry, signal.stop_loss, signal.tradable_price
    earned = result(signal.direction, *terms, price, signal.instrument.pip_size)
    return {
        "price": price_text(price, signal.instrument.digits),
        "gain": gain_text(signal.instrument, earned.pnl, earned.pnl_percent),
        "r": in_r(earned.pnl_r),
        # What reads as nothing is neither.
        "tone": tone(round(earned.pnl_r, 2)),
    }
