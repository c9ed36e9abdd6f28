"""What the engine asks of a feed, and what a feed may ask of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from market.prices.candles import Candle
from market.prices.ticks import Tick


class Inlet(Protocol):
    """The engine as one feed sees it. Nothing here waits or raises."""

    def take(self, ticks: list[Tick]) -> None:
        """What the source sent, in its order; an empty list says that it is alive."""

    def lost(self, why: str) -> None:
        """The source is gone or silent: "the connection was closed (1006)"."""

    def refuse(self, reason: str, what: str = "", symbols: Sequence[str] = ()) -> None:
        """A message that made no tick is counted: "malformed", "unknown_symbol". `what` is a sentence for
        staff, where they have to do something about it. Of `symbols` nothing comes before that."""

    def missing(self) -> dict[str, int]:
        """For each symbol that lacks closed minutes up to now, when the first of them opened (ms)."""

    def backfill(self, symbol: str, minutes: list[Candle], basis: str) -> None:
        """Closed 1m candles from the source's own history, oldest first; those already known stay."""


class Feed(Protocol):
    """Made from the symbols it is to follow and its settings; reconnects by itself."""

    async def run(self, inlet: Inlet) -> None:
        """Until cancelled, or until there is nothing more to come. Closes what it opened."""
