"""Rows 46 and 47: a peer that is gone without a word, and one that reads and never answers a ping."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.patience import PATIENCE_S
from tests.reliability.clients.deaf import served_by, stop_reading
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import StreamService, streaming
from tests.serving.websocket.wires import PING, PONG, TEXT, RawClient

DROPPED_WITHIN_S, STEADY_S = 30.0, 40.0
PATH = "/ws/signals"


@pytest.fixture
def service(embedded: Installation) -> Iterator[StreamService]:
    with streaming(embedded) as running:
        yield running


@pytest.fixture
def message(service: StreamService) -> dict[str, str]:
    return {"action": "subscribe", "api_key": service.make_key()}


async def until_gone(port: int, client_port: int) -> float:
    """How long the service still held it; only the kernel knows."""
    began_at = time.monotonic()
    while client_port in await asyncio.to_thread(served_by, port):
        assert time.monotonic() - began_at < PATIENCE_S
        await asyncio.sleep(0.1)
    return time.monotonic() - began_at


async def read_and_answer(client: RawClient, *, pings: list[bytes], answers: bool) -> None:
    while True:
        opcode, payload = await client.hear()
        if opcode == PING:
            pings.append(payload)
            if answers:
                client.send(PONG, payload)


@pytest.mark.row("46, 47", "disconnected within 30 s; a client that answers stays")
async def test_vanished_and_unresponsive_clients_are_disconnected(
    service: StreamService, message: dict[str, str], tell: Tell
) -> None:
    port = service.servers[0].port
    gone = await stop_reading(port, PATH, message)
    silent, answering = [await RawClient.connect(port, path=PATH) for _ in range(2)]
    pings: tuple[list[bytes], list[bytes]] = [], []
    for client in (silent, answering):
        client.send(TEXT, json.dumps(message).encode())
    reading = [
        asyncio.create_task(read_and_answer(silent, pings=pings[0], answers=False)),
        asyncio.create_task(read_and_answer(answering, pings=pings[1], answers=True)),
    ]
    own = [client.writer.get_extra_info("sockname")[1] for client in (silent, answering)]
    took_s = await asyncio.gather(until_gone(port, gone.port), until_gone(port, own[0]))
    await asyncio.sleep(STEADY_S - max(took_s))
    stays = own[1] in served_by(port)
    for task in reading:
        task.cancel()
    await asyncio.gather(*reading, return_exceptions=True)
    for client in (silent, answering):
        client.abort()
        with suppress(ConnectionError):
            await client.writer.wait_closed()
    gone.close()
    tell(f"gone after {took_s[0]:.1f} and {took_s[1]:.1f} s; pings {len(pings[0])} and {len(pings[1])}")
    assert max(took_s) <= DROPPED_WITHIN_S
    assert (bool(pings[0]), len(pings[1]) > 2, stays) == (True, True, True)
