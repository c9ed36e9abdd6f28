"""Clocks that a test sets, of processes that it starts."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from tests.market.feeds.venues.fakes.kraken import STATUS, FakeKraken
from tests.market.feeds.venues.fakes.venue import Visit
from tests.programs.debian import require_debian

LIBRARY = "/usr/lib/*/faketime/libfaketimeMT.so.1"


class Clock:
    """Of one process: the wall's, which may be set; not the monotonic one."""

    def __init__(self, directory: Path) -> None:
        require_debian("faketime")
        (library, *_) = Path("/").glob(LIBRARY[1:])
        self._file = directory / "clock"
        self.environment = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        self.step(0)

    def step(self, seconds: int) -> None:
        made = self._file.with_suffix(".new")
        made.write_text(f"{seconds:+d}s")
        made.replace(self._file)


@contextmanager
def quoting_venue(name: str) -> Iterator[str]:
    """A Kraken with a clock that nobody sets. It quotes ten times a second."""
    venue = FakeKraken()

    def quote(connection: ServerConnection) -> None:
        visit, bid = Visit(), 100.0
        connection.send(STATUS)
        with suppress(ConnectionClosed):
            while True:
                with suppress(TimeoutError):
                    request = json.loads(connection.recv(0.1))
                    for answer in venue.answers(request, visit):
                        connection.send(answer)
                if visit.asked:
                    bid = 100.0 + (bid * 7) % 1
                    bid = round(bid + 0.01, 2)
                    connection.send(venue.quote(name, bid, bid + 0.02, time.time_ns() // 1_000_000))

    with serve(quote, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join()
