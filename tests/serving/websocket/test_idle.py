"""What a connection holds while nothing happens on it. There are thousands of these."""

from __future__ import annotations

import gc

from websockets.datastructures import Headers
from websockets.frames import Frame
from websockets.http11 import Request, Response

from tests.patience import until

from .wires import CONT, TEXT, make_serving, on_uvloop

OF_A_HANDSHAKE = (Request, Response, Headers)


def count(*kinds: type) -> int:
    """Not `isinstance`, which would wake lazy objects."""
    return sum(type(each) in kinds for each in gc.get_objects())


@on_uvloop
async def test_nothing_of_the_handshake_is_left() -> None:
    async with make_serving() as serving:
        gc.collect()
        before = count(*OF_A_HANDSHAKE)
        client, held = await serving.open()
        assert count(*OF_A_HANDSHAKE) == before
        client.send(TEXT, b"a")
        await until(lambda: held.received == ["a"])


@on_uvloop
async def test_a_long_message_is_let_go_when_it_was_read() -> None:
    async with make_serving() as serving:
        client, held = await serving.open()
        client.send(TEXT, b"a" * 10_000)
        client.send(TEXT, b"b" * 5_000, fin=False)
        client.send(CONT, b"b" * 5_000)
        await until(lambda: len(held.received) == 2)
        frames = [each for each in gc.get_objects() if type(each) is Frame]
        assert sum(len(each.data) for each in frames) < 1_000
