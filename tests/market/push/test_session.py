from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from accounts.key_text import generate_key, prefix_of
from core.clock import now_ms
from core.events.event_feed import feed
from market.models import IngestKey
from market.push.keys import LEAD, revoke_ingest_key
from market.push.session import IngestConsumer
from tests.client import Server
from tests.contract.streams.client import in_time, shortened
from tests.patience import PATIENCE_S, until

from .conftest import make_api_key, make_ingest_key, make_tick

pytestmark = pytest.mark.usefixtures("service")


class Socket:
    """A source of ticks; `closed` is the code with which the service ended it."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    def send(self, message: Any) -> None:
        self.connection.send(message if isinstance(message, str | bytes) else json.dumps(message))

    def hear(self) -> dict[str, Any]:
        frame: dict[str, Any] = json.loads(self.connection.recv(PATIENCE_S))
        assert 0 <= now_ms() - frame.pop("time") < 1_000 * PATIENCE_S
        return frame

    def ask(self, message: Any) -> dict[str, Any]:
        self.send(message)
        return self.hear()

    def refused(self, message: Any = None) -> tuple[str, bool]:
        """The code of the next frame, which is an error, and whether it is fatal."""
        frame = self.hear() if message is None else self.ask(message)
        assert frame["type"] == "error"
        return frame["error"]["code"], frame["fatal"]

    @property
    def closed(self) -> int | None:
        with pytest.raises(ConnectionClosed):
            self.connection.recv(PATIENCE_S)
        return self.connection.close_code


def opened(server: Server, *, path: str = "/ws/ingest", **headers: str) -> Socket:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    url = f"ws://127.0.0.1:{server.port}{path}"
    made = connect(url, additional_headers=names, max_size=None, compression=None, open_timeout=PATIENCE_S)
    return Socket(made)


@pytest.fixture
def socket(service: Server) -> Iterator[Socket]:
    """One that has not said who it is."""
    made = opened(service)
    yield made
    made.connection.close()


@pytest.fixture
def source(service: Server, key: str) -> Iterator[Socket]:
    """One whose key came with the handshake."""
    made = opened(service, X_Ingest_Key=key)
    assert made.hear() == {"type": "authenticated", "name": "desk", "symbols": ["*"]}
    yield made
    made.connection.close()


def test_key_in_the_first_message(socket: Socket, symbol: str) -> None:
    answer = socket.ask({"action": "auth", "key": make_ingest_key("bridge", symbol), "id": 1})
    assert answer == {"type": "authenticated", "name": "bridge", "symbols": [symbol], "id": 1}
    assert socket.ask(make_tick(symbol)) == {"type": "result", "accepted": 1, "rejected": []}


def test_null_id_is_as_if_it_were_absent(source: Socket, symbol: str) -> None:
    answer = source.ask({**make_tick(symbol), "id": None})

    assert answer == {"type": "result", "accepted": 1, "rejected": []}


def test_key_as_bearer_of_the_handshake(service: Server, key: str) -> None:
    made = opened(service, Authorization=f"Bearer {key}")
    assert made.hear()["type"] == "authenticated"
    made.connection.close()


def test_tick_list_and_object_are_answered_alike(source: Socket, symbol: str) -> None:
    first_ms = now_ms() - 3
    tick, later, last = (make_tick(symbol, time=first_ms + place) for place in range(3))
    assert source.ask({**tick, "id": "a"}) == {"type": "result", "accepted": 1, "rejected": [], "id": "a"}
    assert source.ask([later])["accepted"] == 1
    assert source.ask({"ticks": [last], "id": 7}) == {
        "type": "result",
        "accepted": 1,
        "rejected": [],
        "id": 7,
    }


def test_refused_tick_is_told_with_its_place_and_why(source: Socket, symbol: str) -> None:
    answer = source.ask({"id": 3, "ticks": [make_tick(symbol), make_tick(symbol, bid=2)]})
    crossed = {"index": 1, "code": "crossed", "message": "The ask is below the bid."}
    assert answer == {"type": "result", "accepted": 1, "rejected": [crossed], "id": 3}


def test_messages_are_answered_in_their_order(source: Socket, symbol: str) -> None:
    first_ms = now_ms() - 100
    for number in range(100):
        source.send({"id": number, "ticks": [make_tick(symbol, time=first_ms + number)]})
    answers = [source.hear() for _ in range(100)]
    assert [answer["id"] for answer in answers] == list(range(100))
    assert {answer["accepted"] for answer in answers} == {1}


@pytest.mark.parametrize("kind", ["unknown", "an API key", "nonsense"])
@pytest.mark.parametrize("place", ["handshake", "message"])
def test_bad_key_ends_it(service: Server, kind: str, place: str) -> None:
    key = {"unknown": generate_key(LEAD), "an API key": make_api_key(), "nonsense": "x"}[kind]
    headers = {"X_Ingest_Key": key} if place == "handshake" else {}
    made = opened(service, **headers)
    refused = made.refused(None if headers else {"action": "auth", "key": key})
    assert (refused, made.closed) == (("invalid_ingest_key", True), 4401)


def test_ticks_before_the_key_end_it(socket: Socket, symbol: str) -> None:
    assert socket.refused(make_tick(symbol)) == ("missing_ingest_key", True)
    assert socket.closed == 4401


def test_who_sends_no_key_is_not_kept(service: Server) -> None:
    before, IngestConsumer.FIRST_WITHIN_S = IngestConsumer.FIRST_WITHIN_S, 0.05
    try:
        made = opened(service)
        frame = made.hear()
    finally:
        IngestConsumer.FIRST_WITHIN_S = before
    assert (frame["error"]["code"], frame["fatal"], frame["retry"]) == ("auth_timeout", True, True)
    assert made.closed == 4408


def test_who_sent_a_key_in_time_is_kept(service: Server, key: str) -> None:
    def authenticate(within_s: float) -> Socket | None:
        with shortened(IngestConsumer, "FIRST_WITHIN_S", within_s):
            made, late = opened(service, X_Ingest_Key=key), opened(service)
            is_in_time = made.hear()["type"] == "authenticated"
            # It came after the other, whose time would be over by now.
            assert late.refused()[0] == "auth_timeout"
            return made if is_in_time else None

    made = in_time(0.05, authenticate)
    assert made.ask([])["type"] == "result"
    made.connection.close()


@pytest.mark.parametrize(
    "message",
    [
        *("nonsense", "5", "[NaN]", b"[]", '{"ticks":5}', '{"id":[],"ticks":[]}', '{"id":true,"ticks":[]}'),
        *('{"id":1e999,"ticks":[]}', f'{{"id":{"9" * 5000},"ticks":[]}}', '{"action":"auth","key":1e999}'),
        *('{"action":"subscribe"}', '{"action":"auth"}', '{"action":"auth","key":5}'),
        json.dumps({"ticks": [], "id": "x" * 65}),
    ],
)
def test_bad_message_is_told_and_the_next_is_taken(source: Socket, message: str | bytes) -> None:
    assert source.refused(message) == ("invalid_message", False)
    assert source.ask([])["type"] == "result"


def test_tenth_bad_message_within_a_minute_ends_it(source: Socket) -> None:
    assert [source.refused("nonsense") for _ in range(10)] == [("invalid_message", False)] * 9 + [
        ("invalid_message", True)
    ]
    assert source.closed == 4400


def test_too_many_ticks_are_told_and_the_next_are_taken(source: Socket, symbol: str) -> None:
    assert source.refused([make_tick(symbol)] * 1_001) == ("too_large", False)
    assert source.ask(make_tick(symbol))["accepted"] == 1


@pytest.mark.parametrize("kind", [str, bytes])
def test_message_above_a_mebibyte_ends_it(source: Socket, kind: type) -> None:
    assert source.ask("[" + " " * 1_048_574 + "]")["type"] == "result"
    text = " " * 1_048_577
    source.send(text if kind is str else text.encode())
    assert source.closed == 1009


def test_another_key_on_the_same_socket_is_refused(source: Socket, key: str) -> None:
    assert source.refused({"action": "auth", "key": make_ingest_key("other")}) == ("invalid_message", False)
    assert source.ask({"action": "auth", "key": key})["name"] == "desk"


def test_revoked_key_ends_its_sockets_and_no_other(service: Server, source: Socket) -> None:
    key = make_ingest_key("bridge")
    made = [opened(service, X_Ingest_Key=key) for _ in range(2)]
    assert {socket.hear()["name"] for socket in made} == {"bridge"}
    revoke_ingest_key(IngestKey.objects.get(prefix=prefix_of(key, LEAD)), by="test")
    service.run(feed.read())
    for socket in made:
        assert (socket.refused(), socket.closed) == (("invalid_ingest_key", True), 4401)
    assert source.ask([])["type"] == "result"


def test_source_that_reads_nothing_holds_up_itself_alone(service: Server, key: str, source: Socket) -> None:
    async def run() -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", service.port, limit=1)
        others = set(service.state.connections)
        writer.write(handshake(service.port, key))
        await until(lambda: any(hasattr(each, "read_paused") for each in service.state.connections - others))
        (connection,) = service.state.connections - others
        await flood(writer, connection)
        assert await asyncio.to_thread(source.ask, []) == {"type": "result", "accepted": 0, "rejected": []}
        writer.transport.abort()

    asyncio.run(run())


async def flood(writer: asyncio.StreamWriter, connection: Any) -> None:
    """Until the service does not read on, because it cannot answer."""
    message = masked(json.dumps([{"symbol": "NOPE", "bid": 1, "ask": 2}] * 300).encode())

    def is_held_up() -> bool:
        if writer.transport.get_write_buffer_size() == 0:
            writer.write(message)
        return bool(connection.read_paused)

    await until(is_held_up)


def handshake(port: int, key: str) -> bytes:
    lines = [
        "GET /ws/ingest HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        f"X-Ingest-Key: {key}",
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def masked(text: bytes) -> bytes:
    """One text frame of 126 to 65,535 bytes, under the mask 0."""
    return b"\x81\xfe" + len(text).to_bytes(2, "big") + b"\0\0\0\0" + text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Origin", "http://[x"),
        ("Host", "evil.example"),
    ],
)
def test_page_of_another_origin_gets_no_socket(service: Server, key: str, name: str, value: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        opened(service, X_Ingest_Key=key, **{name: value})
    assert refused.value.response.status_code == 403


def test_page_of_our_own_gets_one(service: Server, key: str) -> None:
    made = opened(service, X_Ingest_Key=key, Origin=f"http://127.0.0.1:{service.port}")
    assert made.hear()["type"] == "authenticated"
    made.connection.close()


@pytest.mark.parametrize("path", ["/ws/ingest/more", "/ws/nothing", "/ws", "/", "/ingest/ticks"])
def test_no_other_path_takes_this_socket(service: Server, key: str, path: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        opened(service, path=path, X_Ingest_Key=key)
    assert refused.value.response.status_code == 404
