"""What is asked of whom, and what must come of it."""

from __future__ import annotations

from typing import Literal, NamedTuple

OURS, SHARED = "ours", "ours, limits over Redis"
NODE, GRANIAN, SOCKETIFY, STARLETTE = "Node", "granian", "socketify", "Starlette"
BOLT, FASTAPI = "django-bolt", "FastAPI"
RAW = (NODE, GRANIAN, SOCKETIFY, STARLETTE)
"""They send the bytes that ours sent, and its headers."""
ALL = (OURS, NODE, SHARED, GRANIAN, SOCKETIFY, STARLETTE, BOLT, FASTAPI)
FRAMEWORKS = (OURS, SHARED, FASTAPI)
Figure = Literal["per_cpu_second", "p99_ms"]


class Case(NamedTuple):
    name: str
    path: str
    servers: tuple[str, ...]
    """In the order in which they take turns."""
    connections: int = 16


class Bound(NamedTuple):
    """Of a ratio between two servers: the benchmark fails beyond the floor, and the goal is further."""

    case: str
    against: str
    floor: float
    goal: float
    of: str = OURS
    figure: Figure = "per_cpu_second"

    @property
    def is_least(self) -> bool:
        """A latency must be at most what the bound says."""
        return self.figure == "per_cpu_second"


QUOTE = Case("quote", "/api/market/EURUSD/quote", ALL)
BARS = Case("500 bars", "/api/market/EURUSD?timeframe=1h&bars=500", ALL)
SIGNALS = Case("signals", "/api/signals?limit=50", FRAMEWORKS)
NEWS = Case("news", "/api/news?limit=50", FRAMEWORKS)
CASES = (
    QUOTE,
    BARS,
    Case("100 bars", "/api/market/EURUSD?timeframe=1h&bars=100", FRAMEWORKS),
    SIGNALS,
    NEWS,
    Case("10,000 candles", "/api/market/EURUSD/history?limit=10000", (OURS, FASTAPI), connections=1),
)
LATENCY_CASES = (SIGNALS, NEWS)
RECORDED = (QUOTE, BARS)
"""What raw peers send is what ours sent."""

BOUNDS = (
    Bound("quote", NODE, 1.0, 1.5),
    Bound("quote", GRANIAN, 1.2, 1.8),
    Bound("quote", STARLETTE, 2.5, 4.0),
    Bound("quote", BOLT, 2.5, 4.0),
    Bound("quote", FASTAPI, 9.0, 14.0),
    Bound("500 bars", NODE, 0.8, 1.1),
    Bound("500 bars", GRANIAN, 1.0, 1.4),
    Bound("500 bars", SOCKETIFY, 0.9, 1.2),
    Bound("500 bars", STARLETTE, 2.0, 3.0),
    Bound("500 bars", BOLT, 8.0, 11.0),
    Bound("500 bars", FASTAPI, 25.0, 40.0),
    Bound("quote", OURS, 0.5, 0.7, of=SHARED),
    Bound("500 bars", OURS, 0.5, 0.7, of=SHARED),
    Bound("quote", NODE, 1.0, 0.5, figure="p99_ms"),
    Bound("100 bars", FASTAPI, 2.0, 2.0),
    Bound("signals", FASTAPI, 1.5, 1.5),
    Bound("news", FASTAPI, 1.5, 1.5),
    Bound("10,000 candles", FASTAPI, 3.0, 3.0),
    # A shared limit costs a round trip, so half as fast is fast enough.
    Bound("100 bars", FASTAPI, 1.0, 1.0, of=SHARED),
    Bound("signals", FASTAPI, 0.75, 0.75, of=SHARED),
    Bound("news", FASTAPI, 0.75, 0.75, of=SHARED),
)
