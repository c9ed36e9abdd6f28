"""The hub on real sockets: frames go past the connection, and yet never before what it still holds."""

from __future__ import annotations

import asyncio
import random
import ssl
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from market.streams.hub.hub import Hub
from market.streams.hub.subscribers import Subscriber
from serving.websocket.connection import NO_DESCRIPTOR, frame
from tests.certificates import make_certificate
from tests.patience import until
from tests.serving.websocket.wires import (
    LARGE,
    PING,
    PONG,
    TEXT,
    Held,
    RawClient,
    handshake,
    make_serving,
    on_uvloop,
)

from .hubs import TextPublication

TOPICS = ("EURUSD", "XAUUSD")


def joined(hub: Hub, held: Held, *topics: str) -> None:
    hub.subscribe(hub.join(held.connection, lambda: None), topics)


async def hear_in_fits(
    client: RawClient, number: int, chance: random.Random, begun: asyncio.Event
) -> list[bytes]:
    """It sends pings now and then, does not read for a while, and reads again."""
    texts: list[bytes] = []
    await begun.wait()
    while len(texts) < number:
        if chance.random() < 0.02:
            client.send(PING, b"?")
            await asyncio.sleep(0.005)
        opcode, payload = await client.hear()
        assert opcode == TEXT or (opcode, payload) == (PONG, b"?")
        if opcode == TEXT:
            texts.append(payload)
    return texts


@pytest.mark.parametrize("own", [False, True], ids=["same symbols", "own symbols"])
@on_uvloop
async def test_all_comes_in_order_however_the_clients_read(own: bool) -> None:
    chance, hub, number, begun = random.Random(7), Hub(), 1_500, asyncio.Event()
    async with make_serving() as serving:
        opened = [await serving.open(buffer=4096) for _ in range(4)]
        for place, (_, held) in enumerate(opened):
            joined(hub, held, *TOPICS, *((str(place),) if own else ()))
        hearing = [asyncio.create_task(hear_in_fits(client, number, chance, begun)) for client, _ in opened]
        sent: list[bytes] = []
        slow: set[Subscriber] = set()
        while len(sent) < number:
            for _ in range(chance.choice((1, 1, 5))):
                sent.append(b"%d " % len(sent) + b"x" * chance.randrange(3_000))
                hub.publish(TextPublication(sent[-1].decode()), chance.choice(TOPICS))
            await asyncio.sleep(0)
            slow.update(hub.slow.subscribers)
            if len(slow) == len(opened):
                begun.set()
            if begun.is_set() and len(sent) % 100 < 5:
                # So that nobody is given up.
                await until(lambda: not hub.slow.subscribers)
        assert begun.is_set(), "the test is to fill the sockets"
        assert [await heard for heard in hearing] == [sent[:number]] * 4


@on_uvloop
async def test_a_connection_that_ended_or_is_full_has_no_descriptor() -> None:
    async with make_serving() as serving:
        (gone, held), (_, full) = await serving.open(), await serving.open(buffer=4096)
        assert NO_DESCRIPTOR not in (held.connection.descriptor, full.connection.descriptor)
        gone.abort()
        await until(lambda: held.told == ["ended"])
        full.connection.write(frame(b"x" * 5_000_000))
        assert (held.connection.descriptor, full.connection.descriptor) == (NO_DESCRIPTOR, NO_DESCRIPTOR)


@on_uvloop
async def test_nothing_passes_an_encrypted_connection_by() -> None:
    with TemporaryDirectory() as directory:
        key, certificate = make_certificate(Path(directory))
        trusts = ssl.create_default_context(cafile=certificate)
        async with make_serving(ssl_keyfile=key, ssl_certfile=certificate) as serving:
            client, held = await serving.open(trusts=trusts)
            assert (held.connection.descriptor, held.told) == (NO_DESCRIPTOR, [])
            hub = Hub()
            joined(hub, held, "EURUSD")
            hub.publish(TextPublication("a"), "EURUSD")
            assert await client.hear() == (TEXT, b"a")
            assert not hub.slow.subscribers


@on_uvloop
async def test_nothing_comes_before_an_answer_that_was_asked_for_first() -> None:
    async with make_serving() as serving:
        reader, writer = await asyncio.open_connection("127.0.0.1", serving.port, limit=4096)
        writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        writer.write(handshake())
        await reader.readexactly(len(LARGE))
        assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
        await until(lambda: serving.app.held)
        assert serving.app.held[0].waiting_at_first == 0
        writer.transport.abort()
