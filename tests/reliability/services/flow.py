"""Ticks at an even rate, from a thread of their own."""

from __future__ import annotations

import itertools
import threading
import time
from types import TracebackType

from .stream_services import StreamService

TURN_S = 0.05


class Flow:
    def __init__(self, service: StreamService, a_second: int) -> None:
        self._service, self._number = service, int(a_second * TURN_S)
        self._symbols = itertools.cycle(service.symbols)
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.sent = 0

    def __enter__(self) -> Flow:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Nothing is under way any more."""
        self._has_ended.set()
        self._thread.join()

    def _run(self) -> None:
        next_at = time.monotonic()
        while not self._has_ended.wait(max(0.0, next_at - time.monotonic())):
            next_at += TURN_S
            symbols = list(itertools.islice(self._symbols, self._number))
            if self._service.push(self._service.make_ticks(symbols)):
                self.sent += len(symbols)
