"""A progress bar on a terminal; nothing where nobody looks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self, TextIO

WIDTH = 30
EVERY_S = 0.1


class ProgressBar:
    def __init__(self, out: TextIO, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`total` is in bytes; 0 where nobody knows it."""
        self._out = out if out.isatty() else None
        self._total = total
        self._clock = clock
        self._began_at = self._shown_at = clock()

    def show(self, done: int, ticks: int) -> None:
        now = self._clock()
        if self._out is not None and now - self._shown_at >= EVERY_S:
            self._shown_at = now
            self._out.write(f"\r\033[K{self._bar(done)}{self._speed(ticks, now)}")
            self._out.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._out is not None:
            self._out.write("\r\033[K")
            self._out.flush()

    def _bar(self, done: int) -> str:
        if not self._total:
            return ""
        share = min(1.0, done / self._total)
        return f"{share:4.0%} [{'#' * round(share * WIDTH):<{WIDTH}}]  "

    def _speed(self, ticks: int, now: float) -> str:
        return f"{ticks:,} ticks, {ticks / max(now - self._began_at, EVERY_S):,.0f}/s"
