"""What a form would publish, computed as the service will compute it: before anybody sends it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from accounts.number_fields import without_separators
from instruments.facts import InstrumentFacts
from signals_feed.exits import Result, paid_entry, result
from signals_feed.figures import gain_text, in_r, signed
from signals_feed.figures import price as price_text
from signals_feed.rules import Quoted, SignalRefused, SignalTerms, check, faults_of

PRICE = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
PRICES = ("entry", "stop_loss", "take_profit")


def preview(facts: InstrumentFacts, quote: Quoted | None, typed: Mapping[str, str]) -> dict[str, Any]:
    """What is wrong with the terms so far, by field; once all prices are right, their risk and reward.
    Without an entry, that is the market's."""
    direction = typed.get("direction", "")
    texts = {name: text for name in PRICES if (text := typed.get(name, "").strip())}
    if quote is None or direction not in ("buy", "sell") or not texts:
        return {}
    prices = {name: price for name, text in texts.items() if (price := read_price(text)) is not None}
    market = quote.ask if direction == "buy" else quote.bid
    example = f"{market:.{facts.digits}f}"
    is_at_market = "entry" not in texts
    if is_at_market:
        prices = {"entry": market, **prices}
    faults = {name: f"This is not a price. Write it like {example}." for name in texts if name not in prices}
    faults |= {each.field: str(each) for each in faults_of(direction, prices, quote, facts.digits)}
    if faults or len(prices) < len(PRICES):
        return {"faults": faults}
    found = computed(facts, quote, SignalTerms(facts.symbol, direction, **prices))
    return {**found, "is_at_market": True} if is_at_market else found


def computed(facts: InstrumentFacts, quote: Quoted, terms: SignalTerms) -> dict[str, Any]:
    try:
        entry, tradable = check(terms, quote, facts.digits)
    except SignalRefused as refusal:
        return {"faults": {refusal.field: str(refusal)}}
    paid = paid_entry(terms.direction, entry, tradable)
    ends = {"risk": terms.stop_loss, "reward": terms.take_profit}
    prices = {"entry": entry, "stop_loss": terms.stop_loss, "take_profit": terms.take_profit, "paid": paid}
    results = {name: result_at(facts, terms, entry, tradable, price) for name, price in ends.items()}
    return {
        "faults": {},
        **{name: price_text(price, facts.digits) for name, price in prices.items()},
        **{name: outcome(facts, earned) for name, earned in results.items()},
        "ratio": f"1 : {results['reward'].pnl_r:,.2f}",
    }


def result_at(
    facts: InstrumentFacts, terms: SignalTerms, entry: Decimal, tradable: Decimal, price: Decimal
) -> Result:
    """Of a close at that price."""
    return result(terms.direction, entry, terms.stop_loss, tradable, price, Decimal(str(facts.pip_size)))


def outcome(facts: InstrumentFacts, earned: Result) -> dict[str, str]:
    gain, percent = gain_text(facts, earned.pnl, earned.pnl_percent), f"{signed(earned.pnl_percent)}%"
    return {"r": in_r(earned.pnl_r), "gain": gain, "percent": "" if percent == gain else percent}


def read_price(text: str) -> Decimal | None:
    """Written as prices are: not as 1e0, nor as inf."""
    plain = without_separators(text)
    return Decimal(plain) if PRICE.fullmatch(plain) else None
