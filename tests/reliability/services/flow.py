"""Ticks at an even rate, from a thread of their own."""

from __future__ import annotations

import itertools
import time

from tests.reliability.clients.writer import Writer

from .stream_services import StreamService

TURN_S = 0.05


class Flow(Writer):
    def __init__(self, service: StreamService, a_second: int) -> None:
        self._service, self._number = service, int(a_second * TURN_S)
        self._symbols = itertools.cycle(service.symbols)
        self._next_at = time.monotonic()
        self.sent = 0

    def turn(self) -> None:
        self._next_at += TURN_S
        symbols = list(itertools.islice(self._symbols, self._number))
        if self._service.push(self._service.make_ticks(symbols)):
            self.sent += len(symbols)
        self.has_ended.wait(max(0.0, self._next_at - time.monotonic()))
