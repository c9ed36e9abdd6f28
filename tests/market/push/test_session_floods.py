"""Frames that no honest source sends, of strangers and of those with a key."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from market.push.session import open_sockets
from tests.client import Server
from tests.patience import until
from tests.serving.websocket.wires import CLOSE, CONT, PING, PONG, TEXT, RawClient, masked

from .conftest import make_tick

FLOODS = {
    "pings": (masked(PING) * 10_000, 4413),
    "pongs": (masked(PONG) * 10_000, 4413),
    "empty fragments": (masked(TEXT, b"", fin=False) + masked(CONT, b"", fin=False) * 10_000, 1009),
}


async def ended(port: int, sent: bytes) -> tuple[list[str], int]:
    """The codes of the errors that came, and that of the close."""
    client = await RawClient.connect(port, path="/ws/ingest")
    told = []
    try:
        client.writer.write(sent)
        while True:
            opcode, payload = await client.hear()
            if opcode == TEXT:
                told.append(json.loads(payload)["error"]["code"])
            elif opcode not in (PING, PONG):
                return told, int.from_bytes(payload[:2], "big")
    finally:
        client.abort()


@pytest.mark.parametrize("has_key", [False, True])
def test_message_in_front_of_a_flood_leaves_no_traceback_and_no_socket(
    service: Server, key: str, symbol: str, caplog: pytest.LogCaptureFixture, *, has_key: bool
) -> None:
    async def run() -> None:
        client = await RawClient.connect(service.port, path="/ws/ingest")
        if has_key:
            client.writer.write(masked(TEXT, json.dumps({"action": "auth", "key": key}).encode()))
            await client.hear()
        client.writer.write(masked(TEXT, json.dumps(make_tick(symbol)).encode()) + masked(PING) * 200)
        while (await client.hear())[0] != CLOSE:
            pass
        client.abort()
        await until(lambda: not any(open_sockets.values()))

    asyncio.run(run())
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("name", FLOODS)
def test_flood_of_a_stranger_ends_at_once(service: Server, name: str) -> None:
    sent, code = FLOODS[name]
    told, closed = asyncio.run(ended(service.port, sent))
    assert (told, closed) == (["too_many_messages"] if code == 4413 else [], code)


async def pushed(port: int, key: str, messages: list[bytes]) -> list[int]:
    client = await RawClient.connect(port, path="/ws/ingest")
    try:
        auth = json.dumps({"action": "auth", "key": key}).encode()
        client.writer.write(b"".join(masked(TEXT, text) for text in [auth, *messages]))
        await client.hear()
        return [json.loads((await client.hear())[1])["id"] for _ in messages]
    finally:
        client.abort()


def test_source_may_send_a_thousand_messages_at_once(service: Server, key: str, symbol: str) -> None:
    numbers = list(range(1_000))
    messages = [json.dumps({"id": number, **make_tick(symbol)}).encode() for number in numbers]
    assert asyncio.run(pushed(service.port, key, messages)) == numbers


def test_message_may_come_in_a_thousand_fragments(service: Server, key: str, symbol: str) -> None:
    text = json.dumps({"id": 1, **make_tick(symbol)}).encode().ljust(1_000)
    parts = [masked(CONT, text[at : at + 1], fin=at == 999) for at in range(1, 1_000)]

    async def run() -> int:
        client = await RawClient.connect(service.port, path="/ws/ingest")
        try:
            auth = json.dumps({"action": "auth", "key": key}).encode()
            client.writer.write(masked(TEXT, auth))
            await client.hear()
            client.writer.write(masked(TEXT, text[:1], fin=False) + b"".join(parts))
            answer: int = json.loads((await client.hear())[1])["accepted"]
            return answer
        finally:
            client.abort()

    assert asyncio.run(run()) == 1
