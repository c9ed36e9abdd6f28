"""What is asked, and how many times faster than FastAPI ours must answer."""

from __future__ import annotations

from typing import NamedTuple

# Limits that are shared over Redis cost a round trip, so that half as fast is fast enough.
SHARED_PART = 0.5


class Case(NamedTuple):
    name: str
    path: str
    floor: float


CASES = (
    Case("quote", "/api/market/EURUSD/quote", 1.0),
    Case("100 bars", "/api/market/EURUSD?timeframe=1h&bars=100", 2.0),
    Case("500 bars", "/api/market/EURUSD?timeframe=1h&bars=500", 6.0),
    Case("signals", "/api/signals?limit=50", 1.5),
    Case("news", "/api/news?limit=50", 1.5),
)
LATENCY_CASES = CASES[3:]
