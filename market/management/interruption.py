"""Ctrl-C as a wish: what is under way comes to a good end first. A second one is heeded at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType


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
