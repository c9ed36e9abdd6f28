"""What commands do at a terminal: find the instrument that is named, show progress, stop in order
on Ctrl-C."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from threading import Event
from types import FrameType
from typing import Self, TextIO

from django.core.management.base import CommandError

from core.program import command
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts

WIDTH = 30
EVERY_S = 0.1


def find_instrument(symbol: str) -> InstrumentFacts:
    """An instrument of the database, active or not, whatever the case of its symbol."""
    catalogue.load_now()
    by_symbol = {facts.symbol: facts for facts in catalogue.all()}
    if facts := by_symbol.get(symbol.upper()):
        return facts
    close = get_close_matches(symbol.upper(), by_symbol, n=1)
    hint = f"Did you mean {close[0]}?" if close else f"`{command('load_instruments')}` adds instruments."
    raise CommandError(f"There is no instrument {symbol}. {hint}")


class ProgressBar:
    def __init__(self, out: TextIO, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`total` is in bytes; 0 if unknown."""
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


@contextmanager
def interruptible() -> Iterator[Event]:
    """The event is set by the first Ctrl-C."""
    stopped = Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)
