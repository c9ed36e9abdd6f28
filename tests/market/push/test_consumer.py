from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from accounts.key_text import generate_key
from core.clock import now_ms
from core.events.event_feed import feed
from core.threads import in_thread
from market.push.consumer import IngestConsumer, open_sockets
from market.push.keys import LEAD, revoke_ingest_key
from tests.client import Server
from tests.contract.streams.client import in_time, shortened
from tests.factories import make_account
from tests.patience import PATIENCE_S, until
from tests.serving.websocket.wires import CLOSE, CONT, PING, PONG, TEXT, RawClient, handshake, masked

from .conftest import lock, logged_source, make_api_key, make_ingest_key, make_tick, read_events, row_of

TAKEN = {"type": "result", "accepted": 1, "rejected": []}


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
    assert socket.ask({**make_tick(symbol), "id": None}) == TAKEN


@pytest.mark.parametrize("origin", [{}, {"Origin": "http://127.0.0.1:{port}"}])
def test_key_as_bearer_of_the_handshake_also_of_a_page_of_our_own(
    service: Server, key: str, origin: dict[str, str]
) -> None:
    headers = {name: value.format(port=service.port) for name, value in origin.items()}
    made = opened(service, Authorization=f"Bearer {key}", **headers)
    assert made.hear()["type"] == "authenticated"
    made.connection.close()


def test_tick_list_and_object_are_answered_alike_in_their_order(source: Socket, symbol: str) -> None:
    first_ms = now_ms() - 100
    ticks = [make_tick(symbol, time=first_ms + number) for number in range(100)]
    assert source.ask({**ticks[0], "id": "a"}) == {**TAKEN, "id": "a"}
    assert source.ask([ticks[1]]) == TAKEN
    for number in range(2, 100):
        source.send({"id": number, "ticks": [ticks[number]]})
    assert [source.hear() for _ in range(2, 100)] == [{**TAKEN, "id": number} for number in range(2, 100)]
    # A refused one is told with its place and why.
    answer = source.ask({"id": 3, "ticks": [make_tick(symbol), make_tick(symbol, bid=2)]})
    crossed = {"index": 1, "code": "crossed", "message": "The ask is below the bid."}
    assert answer == {"type": "result", "accepted": 1, "rejected": [crossed], "id": 3}


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


def test_only_a_source_that_sends_a_key_in_time_is_kept(service: Server, key: str) -> None:
    def authenticate(within_s: float) -> Socket | None:
        with shortened(IngestConsumer, "FIRST_WITHIN_S", within_s):
            made, late = opened(service, X_Ingest_Key=key), opened(service)
            is_in_time = made.hear()["type"] == "authenticated"
            # It came after the other, whose time would be over by now.
            frame = late.hear()
            assert (frame["error"]["code"], frame["fatal"], frame["retry"]) == ("auth_timeout", True, True)
            assert late.closed == 4408
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


def test_tenth_bad_message_within_a_minute_ends_it_and_its_source_is_logged_once(
    source: Socket, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "accounts.access")
    refused = [source.refused("nonsense") for _ in range(10)]
    assert refused == [("invalid_message", False)] * 9 + [("invalid_message", True)]
    assert source.closed == 4400
    assert logged_source(caplog) == "desk"


@pytest.mark.served
@pytest.mark.parametrize("kind", [str, bytes])
def test_too_many_ticks_are_told_and_a_message_above_a_mebibyte_ends_it(
    source: Socket, symbol: str, kind: type
) -> None:
    assert source.refused([make_tick(symbol)] * 1_001) == ("too_large", False)
    assert source.ask(make_tick(symbol))["accepted"] == 1
    assert source.ask("[" + " " * 1_048_574 + "]")["type"] == "result"
    text = " " * 1_048_577
    source.send(text if kind is str else text.encode())
    assert source.closed == 1009


def test_another_key_on_the_same_socket_is_refused(source: Socket, key: str) -> None:
    assert source.refused({"action": "auth", "key": make_ingest_key("other")}) == ("invalid_message", False)
    assert source.ask({"action": "auth", "key": key})["name"] == "desk"


@pytest.mark.parametrize("how", ["revoked", "its account is locked"])
def test_key_that_ends_ends_its_sockets_and_no_other(service: Server, source: Socket, how: str) -> None:
    account = make_account()
    key = make_ingest_key("bridge", account=account)
    made = [opened(service, X_Ingest_Key=key) for _ in range(2)]
    assert {socket.hear()["name"] for socket in made} == {"bridge"}
    if how == "revoked":
        revoke_ingest_key(row_of(key), by="test")
    else:
        lock(account)
    read_events(service)
    for socket in made:
        assert (socket.refused(), socket.closed) == (("invalid_ingest_key", True), 4401)
    assert source.ask([])["type"] == "result"


def test_source_that_reads_nothing_holds_up_itself_alone(service: Server, key: str, source: Socket) -> None:
    message = masked(TEXT, json.dumps([{"symbol": "NOPE", "bid": 1, "ask": 2}] * 300).encode())

    async def run() -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", service.port, limit=1)
        others = set(service.state.connections)
        writer.write(handshake(f"X-Ingest-Key: {key}", path="/ws/ingest"))
        await until(lambda: any(hasattr(each, "read_paused") for each in service.state.connections - others))
        connection: Any = (service.state.connections - others).pop()

        def is_held_up() -> bool:
            # It does not read on, because it cannot answer.
            if writer.transport.get_write_buffer_size() == 0:
                writer.write(message)
            return bool(connection.read_paused)

        await until(is_held_up)
        assert await asyncio.to_thread(source.ask, []) == {"type": "result", "accepted": 0, "rejected": []}
        writer.transport.abort()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        *(
            ("/ws/ingest", {"Origin": origin}, 403)
            for origin in ("https://evil.example", "null", "http://[x")
        ),
        ("/ws/ingest", {"Host": "evil.example"}, 403),
        *((path, {}, 404) for path in ("/ws/ingest/more", "/ws/nothing", "/", "/ingest/ticks")),
    ],
)
def test_other_origins_hosts_and_paths_get_no_socket(
    service: Server, key: str, path: str, headers: dict[str, str], status: int
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        opened(service, path=path, X_Ingest_Key=key, **headers)
    assert refused.value.response.status_code == status


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
    line: Line
    is_listed = False

    async def authenticate(self, key: str) -> None:
        await super().authenticate(key)
        # Whoever is over is in no list of open sockets.
        self.is_listed = self in open_sockets[self.key_id]
        self.line.is_reading.set()


@pytest.mark.django_db(transaction=True)
async def test_key_that_is_found_as_the_time_runs_out_comes_too_late() -> None:
    consumer = Hasty()
    line = consumer.line = Line(await in_thread(make_ingest_key))
    await feed.start()
    try:
        async with asyncio.timeout(PATIENCE_S):
            await consumer(line.scope, line.says.get, line.send)
    finally:
        await feed.stop()

    _, told, closed = line.told
    assert json.loads(told["text"])["error"]["code"] == "auth_timeout"
    assert (closed["code"], consumer.is_listed) == (4408, False)


async def raw(port: int, key: str = "") -> RawClient:
    client = await RawClient.connect(port, path="/ws/ingest")
    if key:
        client.send(TEXT, json.dumps({"action": "auth", "key": key}).encode())
        await client.hear()
    return client


@pytest.mark.parametrize("has_key", [False, True])
def test_message_in_front_of_a_flood_leaves_no_traceback_and_no_socket(
    service: Server, key: str, symbol: str, caplog: pytest.LogCaptureFixture, has_key: bool
) -> None:
    async def run() -> None:
        client = await raw(service.port, key * has_key)
        client.writer.write(masked(TEXT, json.dumps(make_tick(symbol)).encode()) + masked(PING) * 200)
        await client.close_code()
        client.abort()
        await until(lambda: not any(open_sockets.values()))

    asyncio.run(run())
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize(
    ("sent", "codes", "close"),
    [
        (masked(PING) * 10_000, ["too_many_messages"], 4413),
        (masked(PONG) * 10_000, ["too_many_messages"], 4413),
        (masked(TEXT, fin=False) + masked(CONT, fin=False) * 10_000, [], 1009),
    ],
    ids=["pings", "pongs", "empty fragments"],
)
def test_flood_of_a_stranger_ends_at_once(service: Server, sent: bytes, codes: list[str], close: int) -> None:
    async def run() -> list[tuple[int, bytes]]:
        client = await raw(service.port)
        client.writer.write(sent)
        heard = [await client.hear()]
        while heard[-1][0] != CLOSE:
            heard.append(await client.hear())
        client.abort()
        return heard

    heard = asyncio.run(run())
    assert [json.loads(text)["error"]["code"] for opcode, text in heard if opcode == TEXT] == codes
    assert int.from_bytes(heard[-1][1][:2], "big") == close


def test_source_may_send_a_thousand_messages_at_once_and_one_in_a_thousand_fragments(
    service: Server, key: str, symbol: str
) -> None:
    texts = [json.dumps({"id": number, **make_tick(symbol)}).encode() for number in range(1_001)]
    last = texts.pop().ljust(1_000)
    parts = [masked(CONT, last[at : at + 1], fin=at == 999) for at in range(1, 1_000)]

    async def run() -> list[int]:
        client = await raw(service.port, key)
        client.writer.write(b"".join(masked(TEXT, text) for text in texts))
        numbers = [json.loads((await client.hear())[1])["id"] for _ in texts]
        client.writer.write(masked(TEXT, last[:1], fin=False) + b"".join(parts))
        numbers.append(json.loads((await client.hear())[1])["id"])
        client.abort()
        return numbers

    assert asyncio.run(run()) == list(range(1_001))
