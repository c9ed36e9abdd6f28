from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django.fixtures import Settings
from websockets.asyncio.client import connect

from serving.http.protocol import HttpProtocol
from serving.websocket import protocol
from serving.websocket.connection import count, frame, payloads
from serving.websocket.protocol import WebSocketProtocol
from tests.patience import PATIENCE_S, until

from .wires import CLOSE, CONT, PING, PONG, TEXT, handshake, make_serving, masked, on_uvloop

MEGABYTE = frame(b"x" * 1_000_000)


@given(st.lists(st.binary(max_size=300) | st.sampled_from([b"x" * 65_535, b"x" * 65_536])))
def test_frames_come_apart_into_what_they_were_made_of(messages: list[bytes]) -> None:
    frames = b"".join(frame(message) for message in messages)
    assert list(payloads(frames)) == messages
    assert count(frames) == len(messages)


@pytest.mark.parametrize(("size", "header"), [(125, 2), (126, 4), (65_535, 4), (65_536, 10)])
def test_a_header_is_as_short_as_it_can_be(size: int, header: int) -> None:
    assert len(frame(b"x" * size)) == header + size


@on_uvloop
async def test_a_client_hears_prebuilt_frames_as_messages() -> None:
    sent = ["", "EURUSD", "x" * 125, "y" * 126, "z" * 70_000]
    async with (
        make_serving() as serving,
        connect(f"ws://127.0.0.1:{serving.port}", open_timeout=PATIENCE_S) as client,
    ):
        await until(lambda: serving.app.held)
        serving.app.held[0].connection.write(b"".join(frame(text.encode()) for text in sent))
        assert [await client.recv() for _ in sent] == sent


@on_uvloop
async def test_pings_fragments_and_frames_do_not_mix() -> None:
    async with make_serving(ws_ping_interval=0.01) as serving:
        client, held = await serving.open()
        for number in range(50):
            client.send(TEXT, b"frag", fin=False)
            client.send(PING, b"%d" % number)
            client.send(CONT, b"mented")
            held.connection.write(frame(b"a") + frame(b"b" * 300))
            await client.writer.drain()
        texts: list[bytes] = []
        pongs: list[bytes] = []
        pings = 0
        while len(texts) < 100 or len(pongs) < 50 or not pings:
            opcode, payload = await client.hear()
            if opcode == TEXT:
                texts.append(payload)
            elif opcode == PONG:
                pongs.append(payload)
            else:
                assert opcode == PING
                pings += 1
                client.send(PONG, payload)
        assert texts == [b"a", b"b" * 300] * 50
        assert pongs == [b"%d" % number for number in range(50)]
        await until(lambda: len(held.received) == 50)
        assert set(held.received) == {"fragmented"}


@on_uvloop
async def test_close_comes_after_what_was_written_and_the_last_word() -> None:
    async with make_serving() as serving:
        client, held = await serving.open()
        held.connection.write(frame(b"a"))
        held.connection.close(4401, "no key", last=frame(b"bye"))
        held.connection.close(4500)
        heard = [await client.hear() for _ in range(3)]
        assert heard == [(TEXT, b"a"), (TEXT, b"bye"), (CLOSE, (4401).to_bytes(2, "big") + b"no key")]
        client.send(CLOSE, heard[2][1])
        assert await client.hear_all() == []
        await until(lambda: held.disconnected == 4401)
        assert held.told == ["ended"]


@pytest.mark.parametrize("closing", ["close", "abort"])
@on_uvloop
async def test_the_end_is_told_when_the_client_goes(closing: str) -> None:
    async with make_serving() as serving:
        client, held = await serving.open()
        if closing == "close":
            client.send(CLOSE, (1000).to_bytes(2, "big"))
            assert await client.hear() == (CLOSE, (1000).to_bytes(2, "big"))
        else:
            client.abort()
        await until(lambda: held.told == ["ended"] and held.disconnected is not None)


@on_uvloop
async def test_full_buffers_are_told_and_room_again_too() -> None:
    async with make_serving() as serving:
        client, held = await serving.open()
        held.connection.write(MEGABYTE * 8)
        assert held.told == ["paused"]
        assert held.connection.waiting > 1_000_000
        for _ in range(8):
            assert len((await client.hear())[1]) == 1_000_000
        await until(lambda: held.told == ["paused", "resumed"])
        assert held.connection.waiting == 0


class Filling:
    """A transport that is full again after whatever is written."""

    def __init__(self, connection: WebSocketProtocol) -> None:
        self._connection = connection

    def write(self, data: bytes) -> None:
        self._connection.pause_writing()


@on_uvloop
async def test_room_is_not_told_where_an_owed_pong_has_taken_it() -> None:
    async with make_serving() as serving:
        client, held = await serving.open()
        connection = cast(WebSocketProtocol, held.connection)
        connection.write(MEGABYTE * 8)
        client.send(PING, b"?")
        await until(lambda: connection.owed_pong)
        transport, connection.transport = connection.transport, cast(Any, Filling(connection))
        connection.resume_writing()
        connection.transport = transport
        assert held.told == ["paused", "paused"]
        connection.resume_writing()
        assert held.told == ["paused", "paused", "resumed"]


@on_uvloop
async def test_the_kernel_holds_little_for_a_client_that_does_not_read() -> None:
    async with make_serving() as serving:
        client, held = await serving.open(buffer=4096)
        taken = 0
        while not held.told:
            held.connection.write(frame(b"x" * 1_000))
            taken += 1_000
        assert taken < 1_000_000
        # Paused at once, so that what waits is where it is counted.
        assert held.connection.waiting <= len(frame(b"x" * 1_000))


@pytest.mark.parametrize("who", ["server", "client"])
@on_uvloop
async def test_a_client_that_reads_nothing_is_aborted_whoever_closes(
    monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    monkeypatch.setattr(protocol, "STALLED_LINGER_S", 0.05)
    async with make_serving() as serving:
        serving.app.is_reading.clear()
        client, held = await serving.open(buffer=4096)
        held.connection.write(MEGABYTE * 4)
        if who == "server":
            held.connection.close(4430)
        else:
            client.send(CLOSE, (1000).to_bytes(2, "big"))
        await until(lambda: not serving.open_connections)
        serving.app.is_reading.set()


@pytest.mark.parametrize("is_full", [False, True])
@on_uvloop
async def test_a_peer_that_is_gone_is_aborted(monkeypatch: pytest.MonkeyPatch, is_full: bool) -> None:
    monkeypatch.setattr(protocol, "STALLED_LINGER_S", 0.05)
    async with make_serving(ws_ping_interval=0.05, ws_ping_timeout=0.05) as serving:
        _, held = await serving.open(buffer=4096)
        held.connection.write(MEGABYTE * 4 if is_full else frame(b"a"))
        await until(lambda: "ended" in held.told)
        await until(lambda: not serving.open_connections)


@on_uvloop
async def test_shutdown_says_so_before_it_closes_with_1012() -> None:
    async with make_serving(farewell=b"restarting") as serving:
        clients = [(await serving.open())[0] for _ in range(3)]
        # Unread input at a close would be a reset, and what was written before it lost.
        serving.app.is_reading.clear()
        for client in clients:
            client.writer.write(masked(TEXT, b"busy") * 2)
        await until(
            lambda: all(cast(WebSocketProtocol, held.connection).read_paused for held in serving.app.held)
        )
        stopping = asyncio.create_task(serving.server.shutdown())
        for client in clients:
            assert await client.hear() == (TEXT, b"restarting")
            assert await client.close_code() == 1012
            client.send(CLOSE, (1012).to_bytes(2, "big"))
        # Their answers are heard: what is left unread at the end would be a reset.
        assert [await client.reader.read() for client in clients] == [b""] * 3
        serving.app.is_reading.set()
        await asyncio.wait_for(stopping, PATIENCE_S)


@on_uvloop
async def test_what_came_with_the_handshake_is_heard_once_that_is_answered() -> None:
    async with make_serving(http=HttpProtocol) as serving:
        _, writer = await asyncio.open_connection("127.0.0.1", serving.port)
        writer.write(handshake() + masked(TEXT, b"early"))
        await until(lambda: serving.app.held and serving.app.held[0].received)
        assert serving.app.held[0].received == ["early"]
        writer.close()


@on_uvloop
async def test_socket_counts_for_its_address_until_it_is_lost(settings: Settings) -> None:
    settings.CONNECTIONS_PER_ADDRESS, settings.CONNECTIONS_CAP_LOOPBACK = 1, True
    async with make_serving(http=HttpProtocol) as serving:
        for _ in range(2):
            client, _ = await serving.open()
            reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
            assert (await asyncio.wait_for(reader.read(), PATIENCE_S)).startswith(b"HTTP/1.1 429 ")
            writer.close()
            client.abort()
            await until(lambda: not serving.open_connections)


@on_uvloop
async def test_a_handshake_that_cannot_be_read_is_answered() -> None:
    async with make_serving() as serving:
        reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
        writer.write(handshake(*(f"X-{number}: 1" for number in range(200))))
        answer = await asyncio.wait_for(reader.read(), PATIENCE_S)
        assert answer.startswith(b"HTTP/1.1 400 ")
        writer.close()
