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
        start: datetime | None,
        end: datetime,
        terminal: TextIO | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what, self._start, self._end, self._terminal = what, start, end, terminal
        self._clock, self._began_s = clock, clock()
        self.bars = 0
        self._is_finished = False

    def note(self, bars: int, first: datetime, last: datetime) -> None:
        self.bars += bars
        self._start = self._start or first
        self._draw(f"{AGAIN}{self._line(last)}")

    def finish(self) -> None:
        """Also of an export that is stopped: what is said next begins on a line of its own."""
        if self.bars and not self._is_finished:
            self._is_finished = True
            self._draw("\n")

    def _line(self, last: datetime) -> str:
        begun = self._start or last
        span_s = (self._end - begun).total_seconds()
        share = min(1.0, max(0.0, (last - begun).total_seconds() / span_s)) if span_s > 0 else 1.0
        done = round(WIDTH * share)
        rate = self.bars / max(self._clock() - self._began_s, 0.001)
        bar = "█" * done + "░" * (WIDTH - done)
        # A narrow terminal would break a longer line, and each drawing of it would stay.
        return f"{self._what}  {bar} {share:4.0%}  {self.bars:,} bars  {rate:,.0f}/s  {last:%Y-%m-%d}"[:79]

    def _draw(self, text: str) -> None:
        if self._terminal is not None:
            self._terminal.write(text)
            self._terminal.flush()
