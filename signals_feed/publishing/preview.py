"""What a form would publish, computed as the service will compute it: before anybody sends it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from instruments.facts import InstrumentFacts
from signals_feed.figures import in_r, signed, unit
from signals_feed.rules import Quoted, SignalRefused, SignalTerms, check, paid_entry, result

PRICES = ("entry", "stop_loss", "take_profit")


def preview(facts: InstrumentFacts, quote: Quoted | None, typed: Mapping[str, str]) -> dict[str, Any]:
    """Risk and reward of the terms, or why they would be refused; empty until all prices are typed."""
    prices = {name: read_price(typed.get(name, "")) for name in PRICES}
    if quote is None or None in prices.values():
        return {}
    terms = SignalTerms(facts.symbol, typed.get("direction", ""), **prices)  # type: ignore[arg-type]
    try:
        entry, tradable = check(terms, quote, facts.digits)
    except SignalRefused as refusal:
        return {"field": refusal.field, "refusal": str(refusal)}
    paid = paid_entry(terms.direction, entry, tradable)
    ends = {"risk": terms.stop_loss, "reward": terms.take_profit}
    return {"paid": f"{paid:,.{facts.digits}f}"} | {
        name: outcome(facts, terms, entry, tradable, price) for name, price in ends.items()
    }


def outcome(
    facts: InstrumentFacts, terms: SignalTerms, entry: Decimal, tradable: Decimal, price: Decimal
) -> dict[str, str]:
    """The result of a close at that price."""
    earned = result(terms.direction, entry, terms.stop_loss, tradable, price, Decimal(str(facts.pip_size)))
    return {
        "r": in_r(earned.pnl_r),
        "pips": f"{signed(earned.pnl, 1)}\u00a0{unit(facts)}",
        "percent": f"{signed(earned.pnl_percent)}\u00a0%",
    }


def read_price(text: str) -> Decimal | None:
    try:
        price = Decimal(text.strip())
    except InvalidOperation:
        return None
    return price if price.is_finite() else None
