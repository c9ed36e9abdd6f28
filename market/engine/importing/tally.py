"""What came of an import: counts for the summary, and the lines to name. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

# A weekend in a file of ticks would else be told line by line.
NAMED_EACH = 10


class Fault(NamedTuple):
    path: str
    line: int
    reason: str
    """"malformed", or why the door refused it."""


class StoppedAtFault(Exception):
    """A strict import ends at the first bad line."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault


class Tally:
    def __init__(self) -> None:
        self.ticks = 0
        self.minutes = 0
        self.gaps = 0
        self.faults: Counter[str] = Counter()
        self.named: list[Fault] = []
        """The first few of each reason."""
        self.left: set[tuple[str, int]] = set()
        """Coarser candles, by timeframe and opening, that stay without what was imported into them."""
        self.span_ms: tuple[int, int] | None = None
        """The first and the last stored minute."""

    def count(self, faults: Iterable[Fault]) -> None:
        for fault in faults:
            self.faults[fault.reason] += 1
            if self.faults[fault.reason] <= NAMED_EACH:
                self.named.append(fault)

    def stored(self, first_ms: int, last_ms: int, minutes: int) -> None:
        since_ms, until_ms = self.span_ms or (first_ms, last_ms)
        # The minute in which the file before ended goes on in this one.
        self.minutes += minutes - (until_ms == first_ms and self.minutes > 0)
        self.span_ms = min(since_ms, first_ms), max(until_ms, last_ms)
