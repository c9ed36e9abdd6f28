"""How ticks come to the peers in Python: one a line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Lines(asyncio.Protocol):
    """What one read brings is handed on line by line, and then `done` is called."""

    def __init__(self, take: Callable[[bytes], object], done: Callable[[], object] = lambda: None) -> None:
        self._take, self._done, self._rest = take, done, b""

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line)
        self._done()


def symbol_of(line: bytes) -> str:
    """Of {"symbol":"SYM000",…}."""
    return line[11:17].decode()
