"""How a result came about, in steps that anyone can repeat, each with its formula and value."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from signals_feed import exits

# The name of the input at which each rule closes a buy and a sell.
CLOSES_AT = {
    exits.TARGET: ("take_profit", "take_profit"),
    exits.STOP: ("exit_bid", "exit_ask"),
    exits.CURRENT: ("exit_bid", "exit_ask"),
    exits.STOP_AT_OPEN: ("exit_bid_open", "exit_ask_open"),
    exits.STOP_AT_WORST: ("exit_bid_low", "exit_ask_high"),
    exits.WORST: ("exit_bid_low", "exit_ask_high"),
}
PROVEN_TERMS = ("entry", "stop_loss", "take_profit")
QUOTED = ("bid", "ask", "bid_open", "bid_low", "bid_high", "ask_low", "ask_high", "best", "worst")


class ComputedValue(NamedTuple):
    name: str
    formula: str
    """In the names of inputs and of steps before."""
    value: Decimal
    decimals: int | None = None
    """It is rounded to these, half away from zero; None if it is exact."""


def known_prices(evidence: Any) -> dict[str, Decimal]:
    """Empty without evidence, as old signals are."""
    prices = {name: getattr(evidence, name, None) for name in QUOTED}
    return {name: price for name, price in prices.items() if price is not None}


def inputs(signal: Any, shown: Mapping[str, Any], pip_size: Decimal) -> dict[str, Decimal]:
    """From the rows of a signal and its evidence."""
    given = {name: getattr(signal, name) for name in PROVEN_TERMS}
    for kind in ("entry", "fill", "exit"):
        given |= {f"{kind}_{name}": price for name, price in known_prices(shown.get(kind)).items()}
    given["pip_size"] = pip_size
    if "entry" not in shown:
        given["tradable_price"] = signal.tradable_price
    if "exit" not in shown and signal.close_price is not None:
        given["close_price"] = signal.close_price
    return given


def steps(signal: Any, shown: Mapping[str, Any]) -> Iterator[ComputedValue]:
    is_buy, side = signal.direction == "buy", "ask" if signal.direction == "buy" else "bid"
    if "entry" in shown:
        yield ComputedValue("tradable_price", f"entry_{side}", signal.tradable_price)
    tradable = "tradable_price"
    if "fill" in shown:
        tradable = "fill_price"
        yield ComputedValue(tradable, f"fill_{side}", signal.fill_price)
    paid, exit_ = signal.paid, shown.get("exit")
    if paid is None:
        return
    yield ComputedValue("paid", f"{'max' if is_buy else 'min'}(entry, {tradable})", paid)
    yield ComputedValue("risk", "abs(paid - stop_loss)", abs(paid - signal.stop_loss))
    if signal.close_price is None:
        return
    if exit_ is not None:
        yield ComputedValue("close_price", CLOSES_AT[exit_.rule][0 if is_buy else 1], signal.close_price)
    gained = exits.gain(signal.direction, paid, signal.close_price)
    yield ComputedValue("gained", "close_price - paid" if is_buy else "paid - close_price", gained)
    yield ComputedValue("pnl", "gained / pip_size", signal.pnl, 1)
    yield ComputedValue("pnl_percent", "gained / paid * 100", signal.pnl_percent, 4)
    yield ComputedValue("pnl_r", "gained / risk", signal.pnl_r, 4)
    for name in ("best", "worst"):
        furthest: Decimal | None = getattr(signal, f"{name}_r")
        if furthest is not None and exit_ is not None:
            ahead = f"exit_{name} - paid" if is_buy else f"paid - exit_{name}"
            yield ComputedValue(f"{name}_r", f"({ahead}) / risk", furthest, 4)
