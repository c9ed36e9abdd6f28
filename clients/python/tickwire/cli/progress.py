"""How far an export is: one line of a terminal, drawn again with each page."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import TextIO

WIDTH = 20
# Back to the line's beginning, and what stood there is gone.
AGAIN = "\r\033[K"


class Progress:
    def __init__(
        self,
        what: str,
        end: datetime,
        terminal: TextIO | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what, self._end, self._terminal = what, end, terminal
        self._clock, self._began_s = clock, clock()
        self._first: datetime | None = None
        self._last = end
        self.bars, self.is_complete = 0, False

    def note(self, bars: int, first: datetime, last: datetime) -> None:
        """The span begins with the first candle that there is."""
        self._first, self._last = self._first or first, last
        self.bars += bars
        self._draw(f"{AGAIN}{self._line(self._share(last))}")

    def complete(self) -> None:
        self.is_complete = True
        if self.bars:
            self._draw(f"{AGAIN}{self._line(1.0)}")

    def finish(self) -> None:
        """What is said next begins on a line of its own."""
        if self.bars:
            self._draw("\n")

    def _share(self, last: datetime) -> float:
        first = self._first or last
        span_s = (self._end - first).total_seconds()
        return min(1.0, (last - first).total_seconds() / span_s) if span_s > 0 else 1.0

    def _line(self, share: float) -> str:
        done = round(WIDTH * share)
        rate = self.bars / max(self._clock() - self._began_s, 0.001)
        bar = "█" * done + "░" * (WIDTH - done)
        text = f"{self._what}  {bar} {share:4.0%}  {self.bars:,} bars  {rate:,.0f}/s  {self._last:%Y-%m-%d}"
        # A narrow terminal would break a longer line, and each drawing of it would stay.
        return text[:79]

    def _draw(self, text: str) -> None:
        if self._terminal is not None:
            self._terminal.write(text)
            self._terminal.flush()
