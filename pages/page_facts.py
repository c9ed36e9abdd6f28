"""What the scripts of the terminal know of an instrument before they ask for anything."""

from typing import Any

from instruments.facts import InstrumentFacts
from instruments.units import counted_in
from market import runtime as market

# Longer than any market is closed: Christmas, then a weekend.
COMING_MS = 8 * 86_400_000


def page_facts(facts: InstrumentFacts) -> dict[str, Any]:
    return {
        "name": facts.name,
        "digits": facts.digits,
        "zone": facts.timezone,
        "unit": counted_in(facts.symbol, facts.type),
        "pipSize": facts.pip_size,
        "hasTrades": facts.order_flow_source == "trades",
        "sessions": coming_sessions(facts, market.now_ms()),
        "staleAfterS": facts.stale_after_s,
    }


def coming_sessions(facts: InstrumentFacts, now_ms: int) -> list[tuple[int, int]] | None:
    """Those of the next days, the present one with them. None where the market never closes."""
    if facts.hours.next_open(now_ms) is None:
        return None
    return list(facts.hours.sessions_between(now_ms, now_ms + COMING_MS))
