"""What only bad luck in time brings about, on a socket without a server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from core.events.event_feed import feed
from core.threads import in_thread
from market.push.session import IngestConsumer, open_sockets
from tests.patience import PATIENCE_S

from .conftest import make_ingest_key


class Line:
    """The server's side of a socket whose client takes its time to read."""

    def __init__(self, key: str) -> None:
        headers = [(b"host", b"127.0.0.1"), (b"x-ingest-key", key.encode())]
        self.scope = {"type": "websocket", "path": "/ws/ingest", "headers": headers, "client": None}
        self.says = asyncio.Queue[dict[str, Any]]()
        self.says.put_nowait({"type": "websocket.connect"})
        self.told: list[dict[str, Any]] = []
        self.is_reading = asyncio.Event()

    async def send(self, event: dict[str, Any]) -> None:
        if event["type"] == "websocket.send":
            await self.is_reading.wait()
        self.told.append(event)
        if event["type"] == "websocket.close":
            self.says.put_nowait({"type": "websocket.disconnect", "code": event["code"]})


class Hasty(IngestConsumer):
    FIRST_WITHIN_S = 0.0

    async def authenticate(self, key: str) -> None:
        await super().authenticate(key)
        # Whoever is over is in no list of open sockets.
        self.is_listed = self in open_sockets[self.key_id]
        self.line.is_reading.set()

    line: Line
    is_listed = False


@pytest.mark.django_db(transaction=True)
async def test_key_that_is_found_as_the_time_runs_out_comes_too_late() -> None:
    line = Line(await in_thread(make_ingest_key))
    await feed.start()
    try:
        consumer = Hasty()
        consumer.line = line
        async with asyncio.timeout(PATIENCE_S):
            await consumer(line.scope, line.says.get, line.send)
    finally:
        await feed.stop()

    _, told, closed = line.told
    assert json.loads(told["text"])["error"]["code"] == "auth_timeout"
    assert (closed["code"], consumer.is_listed) == (4408, False)
