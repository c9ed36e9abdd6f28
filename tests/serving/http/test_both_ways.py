"""Whatever bytes come, in whatever pieces: both ways say the same, in the same order."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from itertools import pairwise
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from serving.http.deadlines import OVER
from serving.http.short_path import NO_SHORT_PATH, Give, Headers, ShortPath, ShortPathProtocol

from .conversations import connected, get
from .serving import HOST

KNOWN = [get("/short/a"), get("/short/b?c=d", b"X-API-Key: k\r\n"), get("/later/c")]
POST = b"POST /short/p HTTP/1.1\r\n" + HOST
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
SOCKET = b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
PIECES = [
    *KNOWN * 3,
    get("/long"),
    get("/short/a", b"Connection: close\r\n"),
    get("/short/a", b"Content-Length: 3\r\n"),
    get("/short/a", b"Upgrade: h2c\r\nConnection: Upgrade\r\n"),
    get("/short/a", SOCKET),
    get("/short/a").replace(b"GET", b"HEAD"),
    get("/short/a").replace(b"1.1", b"1.0"),
    POST + b"Content-Length: %d\r\n\r\n" % len(KNOWN[0]),
    POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
    CHUNKED,
    b"%x\r\n" % len(KNOWN[0]) + KNOWN[0] + b"\r\n",
    b"0\r\n\r\n",
    b"0\r\nX: y\r\n\r\n",
    b"GET /short/a HTTP/1.1\r\nX: ",
    b"GET /short/a HTTP/1.1\r\n" + HOST,
    *(b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"\0", b"abc", b" ", b":"),
]


ID = re.compile(rb"req_[a-z2-7]{16}")
# Of the loop: more than eight requests need, each of which waits.
TURNS = 40


class Echoes(ShortPath):
    """Answers with the target, at once or in the next turn of the loop."""

    def __init__(self) -> None:
        super().__init__(self.look_up)
        self.given = 0

    def look_up(self, target: bytes, headers: Headers) -> Give | None:
        return partial(self.give, target) if target.startswith((b"/short", b"/later")) else None

    def give(self, target: bytes, asker: ShortPathProtocol) -> bool:
        self.given += 1
        answer = partial(asker.answer, b"", b"content-length: %d\r\n\r\n" % len(target), target)
        if target.startswith(b"/later"):
            asker.wait()
            asyncio.get_running_loop().call_soon(answer)
        else:
            answer()
        return True


async def echo(scope: dict[str, Any], receive: Any, send: Any) -> None:
    query = scope["query_string"]
    target = scope["raw_path"] + (b"?" + query if query else b"")
    headers = [(b"content-length", b"%d" % len(target))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": target})


async def hear(way: ShortPath, segments: list[bytes]) -> tuple[bytes, int, bool]:
    """All that is said, what the connection does in the end, and whether it was closed."""
    protocol, transport = connected(echo, way)
    for segment in [*KNOWN, *segments]:
        if protocol.state != OVER:
            protocol.data_received(segment)
        for _ in range(TURNS):
            await asyncio.sleep(0)
        assert not protocol.tasks
    said = b"".join(transport.writes), protocol.state, transport.has_ended
    protocol.connection_lost(None)
    return ID.sub(b"ID", said[0]), *said[1:]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place for place in places if 0 < place < len(data)), len(data)]
    return [data[start:end] for start, end in pairwise(bounds)]


conversations = st.builds(
    lambda pieces, places: cut(b"".join(pieces), places),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=8),
    st.lists(st.integers(0, 600), max_size=4),
)


@given(conversations)
@settings(max_examples=150)
@example([KNOWN[0] * 3 + get("/short/a", SOCKET)])
@example([KNOWN[0] + KNOWN[2] + KNOWN[1] + get("/long") + KNOWN[0]])
@example([get("/short/new") + get("/later/new") + get("/short/new")])
@example([b"GET /short/a HTTP/1.1\r\nX: ", KNOWN[1]])
@example([CHUNKED, b"%x\r\n" % len(KNOWN[0]), KNOWN[0], b"\r\n0\r\n\r\n"])
def test_both_say_the_same(segments: list[bytes]) -> None:
    async def both() -> None:
        echoes = Echoes()
        assert await hear(echoes, segments) == await hear(NO_SHORT_PATH, segments)

    asyncio.run(both())


async def test_known_heads_among_them_were_answered_shortly() -> None:
    echoes = Echoes()
    said, _, _ = await hear(echoes, [KNOWN[0] * 3 + get("/long") + KNOWN[1]])

    assert echoes.given == len(KNOWN) + 4
    assert said.count(b"HTTP/1.1 200 OK") == len(KNOWN) + 5


async def test_control_an_answer_to_another_request_is_seen() -> None:
    class Mistaken(Echoes):
        def recall(self, head: bytes) -> Give | None:
            return super().recall(head) and partial(self.give, b"/short/z")

    assert await hear(Mistaken(), [KNOWN[0]]) != await hear(NO_SHORT_PATH, [KNOWN[0]])
