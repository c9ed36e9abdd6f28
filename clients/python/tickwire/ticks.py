"""A tick that the service keeps, as it came."""

from __future__ import annotations

from typing import TypedDict


class Tick(TypedDict):
    timestamp: str
    bid: float
    ask: float
    spread: float
    volume: float
    seq: int
    """As on the stream of prices."""
