"""Where active signals and their markets stand now, for the pages of those who publish."""

from __future__ import annotations

from typing import Any

from instruments.catalogue import InstrumentFacts
from market import services as market

from . import quotes
from .closing import exit_price, result
from .models import Signal

STATES = {
    "open": "open",
    "closed": "closed: nothing can be published or closed by hand now",
    "stale": "stale: its source has gone quiet, so nothing can be published or closed by hand now",
}


def quote_of(facts: InstrumentFacts) -> dict[str, Any]:
    """The quote beside the form. Prices are text with all their decimals."""
    quote, state = market.quote(facts.symbol), market.state(facts)
    described: dict[str, Any] = {"symbol": facts.symbol, "state": state, "words": STATES[state]}
    if quote is None:
        return described
    prices = {"bid": quote.bid, "ask": quote.ask, "spread": quote.spread}
    shown = {name: f"{price:.{facts.digits}f}" for name, price in prices.items()}
    return described | shown | {"age_ms": max(0, market.now_ms() - quote.time_ms)}


def age_words(age_ms: int) -> str:
    """As the page's script says it."""
    seconds = round(age_ms / 1000)
    if seconds < 1:
        return "now"
    if seconds < 120:
        return f"{seconds} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"


def result_now(signal: Signal) -> dict[str, Any]:
    """What closing it at this moment would earn; nothing where there is no quote."""
    quote = quotes.current(signal.instrument.symbol)
    if quote is None:
        return {}
    price = exit_price(signal.direction, quote.bid, quote.ask)
    terms = signal.entry, signal.stop_loss, signal.tradable_price
    earned = result(signal.direction, *terms, price, signal.instrument.pip_size)
    return {
        "price": f"{price:.{signal.instrument.digits}f}",
        "pnl": f"{earned.pnl:+}",
        "pnl_r": f"{earned.pnl_r:+.2f}",
        "tone": "gain" if earned.pnl_r > 0 else "loss" if earned.pnl_r < 0 else "",
    }
