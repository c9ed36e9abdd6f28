"""Frames that no honest client sends."""

from __future__ import annotations

import pytest

from serving.websocket.bounds import FEW_FRAGMENTS, MOST_CONTROLS_A_SECOND, MOST_UNREAD, SLICE_BYTES
from serving.websocket.connection import frame
from tests.patience import until

from .wires import CLOSE, CONT, FLOODED, MAX_BYTES, PING, PONG, TEXT, make_serving, masked, on_uvloop

BINARY = 0x2
BAD_UTF8 = b"\xff\xfe"
HOSTILE = {
    "reserved bit": (b"\xc1\x80\0\0\0\0", 1002),
    "reserved opcode": (b"\x83\x80\0\0\0\0", 1002),
    "reserved control opcode": (b"\x8b\x80\0\0\0\0", 1002),
    "not masked": (b"\x81\x01a", 1002),
    "fragmented ping": (masked(PING, b"", fin=False), 1002),
    "ping of 126 bytes": (masked(PING, b"x" * 126), 1002),
    "continuation of nothing": (masked(CONT, b"a"), 1002),
    "text inside of a text": (masked(TEXT, b"a", fin=False) + masked(TEXT, b"b"), 1002),
    "close of one byte": (masked(CLOSE, b"\x03"), 1002),
    "close with a reserved code": (masked(CLOSE, (1005).to_bytes(2, "big")), 1002),
    "close with a bad reason": (masked(CLOSE, (1000).to_bytes(2, "big") + BAD_UTF8), 1007),
    "bad UTF-8": (masked(TEXT, BAD_UTF8), 1007),
    "bad UTF-8 in fragments": (masked(TEXT, b"\xc3", fin=False) + masked(CONT, b"("), 1007),
    "bad UTF-8 with a close behind it": (masked(TEXT, BAD_UTF8) + masked(CLOSE, b"\x03\xe8"), 1000),
    "lone surrogate": (masked(TEXT, b"\xed\xa0\x80"), 1007),
    "a byte too many": (masked(TEXT, b"x" * (MAX_BYTES + 1)), 1009),
    "1 MiB": (masked(TEXT, b"x" * 1024 * 1024), 1009),
    "2^63 bytes announced": (b"\x81\xff" + (2**63 - 1).to_bytes(8, "big") + b"\0" * 4, 1009),
    "a byte too many in fragments": (masked(TEXT, b"x" * MAX_BYTES, fin=False) + masked(CONT, b"x"), 1009),
    "10,000 fragments": (masked(TEXT, b"x", fin=False) + masked(CONT, b"x", fin=False) * 9_999, 1009),
    "10,000 empty fragments": (masked(TEXT, b"", fin=False) + masked(CONT, b"", fin=False) * 9_999, 1009),
    "a flood of pings": (masked(PING, b"x") * 10_000, 4413),
    "a flood of pongs": (masked(PONG, b"x") * 10_000, 4413),
}


@pytest.mark.parametrize("name", HOSTILE)
@on_uvloop
async def test_hostile_frames_close_with_their_code_and_harm_nobody(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    sent, code = HOSTILE[name]
    async with make_serving() as serving:
        neighbour, other = await serving.open()
        client, held = await serving.open()
        client.writer.write(sent)
        assert await client.close_code() == code
        client.send(CLOSE, code.to_bytes(2, "big"))
        client.writer.close()
        await until(lambda: held.disconnected is not None)
        other.connection.write(frame(b"a"))
        assert await neighbour.hear() == (TEXT, b"a")
    assert [record.message for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")] == []


@on_uvloop
async def test_a_flood_that_nobody_reads_is_bounded() -> None:
    async with make_serving() as serving:
        serving.app.is_reading.clear()
        client, _ = await serving.open()
        client.writer.write(masked(TEXT, b"x") * 1_000)
        assert await client.hear() == (TEXT, FLOODED)
        assert await client.close_code() == 4413
        client.abort()
        serving.app.is_reading.set()


@pytest.mark.parametrize(
    "sent",
    [
        masked(TEXT, b"x" * MAX_BYTES),
        masked(BINARY, BAD_UTF8),
        masked(TEXT, b"x", fin=False) + masked(CONT, b"x", fin=False) * (FEW_FRAGMENTS - 2) + masked(CONT),
        masked(PING, b"x") * MOST_CONTROLS_A_SECOND + masked(TEXT, b"x"),
        masked(TEXT, b"x") * MOST_UNREAD,
    ],
    ids=["the longest message", "binary", "the most fragments", "the most pings", "the most unread"],
)
@on_uvloop
async def test_what_is_just_allowed_passes(sent: bytes) -> None:
    async with make_serving() as serving:
        client, held = await serving.open()
        client.writer.write(sent)
        await until(lambda: held.received)
        assert held.disconnected is None


@on_uvloop
async def test_messages_that_wait_for_their_reader_wait_unparsed_and_in_order() -> None:
    async with make_serving() as serving:
        serving.app.is_guarding = False
        serving.app.is_reading.clear()
        client, held = await serving.open()
        sent = [b"%d" % number for number in range(5_000)]
        client.writer.write(b"".join(masked(TEXT, text) for text in sent) + masked(CLOSE, b"\x03\xe8"))
        await until(lambda: held.connection.queue.qsize() >= MOST_UNREAD)  # type: ignore[attr-defined]
        assert held.connection.queue.qsize() < MOST_UNREAD + SLICE_BYTES // 6  # type: ignore[attr-defined]
        serving.app.is_reading.set()
        await until(lambda: held.disconnected is not None)
    assert held.received == [text.decode() for text in sent]


@on_uvloop
async def test_who_sends_too_many_fragments_is_heard_no_more() -> None:
    async with make_serving() as serving:
        client, held = await serving.open()
        client.writer.write(masked(TEXT, fin=False) + masked(CONT, fin=False) * FEW_FRAGMENTS)
        assert await client.close_code() == 1009
        assert held.connection.is_deaf  # type: ignore[attr-defined]


@on_uvloop
async def test_flood_that_goes_on_behind_the_close_is_parsed_no_more() -> None:
    async with make_serving() as serving:
        client, held = await serving.open()
        held.connection.close(1000)
        client.writer.write(masked(PING, b"x") * 10_000)
        parser = held.connection.conn.reader  # type: ignore[attr-defined]
        await until(lambda: held.connection.is_deaf)  # type: ignore[attr-defined]
        assert len(parser.buffer) < SLICE_BYTES
        assert await client.close_code() == 1000


@on_uvloop
async def test_pings_of_a_client_that_reads_nothing_do_not_pile_up() -> None:
    async with make_serving() as serving:
        client, held = await serving.open(buffer=2**18)
        held.connection.write(frame(b"x" * 4_000_000))
        client.writer.write(masked(PING, b"early") + masked(TEXT, b"1"))
        await until(lambda: held.received == ["1"])
        client.writer.write(masked(PING, b"late") + masked(TEXT, b"2"))
        await until(lambda: held.received == ["1", "2"])
        assert len((await client.hear())[1]) == 4_000_000
        await until(lambda: "resumed" in held.told)
        held.connection.write(frame(b"z"))
        assert [await client.hear() for _ in range(2)] == [(PONG, b"late"), (TEXT, b"z")]


@on_uvloop
async def test_a_client_that_goes_in_the_middle_of_a_frame_leaves_nothing() -> None:
    async with make_serving() as serving:
        client, held = await serving.open()
        client.writer.write(masked(TEXT, b"x" * 100)[:50])
        client.abort()
        await until(lambda: held.disconnected is not None)
        await until(lambda: serving.open_connections == 0)
