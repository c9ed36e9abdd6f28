"""Who pressed of late: buyers who lifted the ask, or sellers who hit the bid. Pure."""

from __future__ import annotations

from market.prices.timeframes import MINUTE_MS
from news.analysis.answer import Finding, OrderFlowEvidence, WindowDelta
from news.analysis.facts import Facts, FlowFact, FlowWindow
from news.analysis.moments import iso_ms

WEIGHTS = {5: 0.2, 15: 0.3, 60: 0.5}
"""By the minutes of a window."""
# A window with this many ticks counts half; with few of them, one more would turn the sign.
COUNTS_HALF_AT = 20
# The tick rule guesses the side from the last move, so it says less, and says the trend again.
TRUST_IN_TICK_RULE = 0.7
DECIMALS = 8


def weigh(facts: Facts) -> Finding:
    flow = facts.flow
    if flow is None or not any(window.count for window in flow.windows):
        return Finding("No order flow came in the last hour.")
    trust = 1.0 if flow.has_sides else TRUST_IN_TICK_RULE
    score = trust * sum(WEIGHTS.get(window.minutes, 0.0) * pressure(window) for window in flow.windows)
    windows = [
        WindowDelta(
            each.minutes,
            round(each.bid_volume, DECIMALS),
            round(each.ask_volume, DECIMALS),
            round(each.ask_volume - each.bid_volume, DECIMALS),
            each.count,
        )
        for each in flow.windows
    ]
    evidence = OrderFlowEvidence(
        "trades" if flow.has_sides else "tick_rule",
        flow.cumulative_delta,
        iso_ms(flow.since_ms),
        windows,
    )
    return Finding(describe(flow, windows[-1], facts.at_ms), score, evidence)


def pressure(window: FlowWindow) -> float:
    """From -1, all sold into the bid, to 1."""
    total = window.ask_volume + window.bid_volume
    if total <= 0:
        return 0.0
    share = (window.ask_volume - window.bid_volume) / total
    return share * window.count / (window.count + COUNTS_HALF_AT)


def describe(flow: FlowFact, longest: WindowDelta, at_ms: int) -> str:
    heard = min(longest.minutes, 1 + (at_ms - flow.since_ms) // MINUTE_MS)
    span = "minute" if heard == 1 else f"{heard} minutes"
    if longest.delta == 0:
        said = "Buyers and sellers were even"
    else:
        said = f"{'Buyers' if longest.delta > 0 else 'Sellers'} pressed more"
    estimated = "" if flow.has_sides else ", as far as the tick rule can tell"
    return f"{said} in the last {span} (delta {longest.delta:+g}{estimated})."
