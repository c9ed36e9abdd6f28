"""Rows 17 to 21: what no honest client sends, to a real process on all three streams."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from pytest_django import DjangoDbBlocker

from tests.contract.streams.client import MARKET, ORDERFLOW
from tests.contract.streams.strangers import SIGNALS
from tests.market.streams.protocol.hostile import NO_OBJECT, NOT_JSON, WRONG_FIELDS, WRONG_ON
from tests.patience import PATIENCE_S, until
from tests.reliability.clients.swarm import listen_many
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation, Process
from tests.reliability.services.stream_services import StreamService, streaming
from tests.serving.websocket.test_hostile_clients import HOSTILE
from tests.serving.websocket.wires import CLOSE, TEXT, RawClient, handshake, masked

SYMBOL, EXAMPLES = "HOSTILE", 450
PATHS = (MARKET, ORDERFLOW, SIGNALS)
# With the tenth a socket ends, and twenty messages may come at once.
MESSAGES_A_SOCKET = 9
BINARY = 0x2
pytestmark = pytest.mark.usefixtures("rows")


@pytest.fixture(scope="module")
def service(embedded_for_module: Installation, django_db_blocker: DjangoDbBlocker) -> Iterator[StreamService]:
    with django_db_blocker.unblock(), streaming(embedded_for_module, 1, [SYMBOL]) as running:
        yield running


@pytest.fixture
def server(service: StreamService) -> Process:
    return service.servers[0]


@pytest.fixture
def key(service: StreamService) -> str:
    return service.make_key()


@pytest.fixture(autouse=True)
def _no_exception_is_unhandled(server: Process) -> Iterator[None]:
    before = server.log.stat().st_size
    yield
    said = server.log.read_text()[before:]
    assert "Traceback" not in said
    assert "could not be answered" not in said


class Sent:
    """Messages on one socket after the other, and what each was answered."""

    def __init__(self, port: int, path: str, key: str) -> None:
        self._port, self._path, self._key = port, path, key
        self._client: RawClient | None = None
        self._left = 0

    async def answer(self, opcode: int, payload: bytes) -> str:
        """The code of the error, the type of another reply, or the code of a close."""
        if self._left == 0:
            await self._connect()
        self._left -= 1
        assert self._client is not None
        self._client.send(opcode, payload)
        return await self._hear()

    async def _hear(self) -> str:
        assert self._client is not None
        opcode, payload = await self._client.hear()
        while opcode not in (TEXT, CLOSE):
            opcode, payload = await self._client.hear()
        if opcode == CLOSE:
            self._left = 0
            return f"closed with {int.from_bytes(payload[:2], 'big')}"
        frame = json.loads(payload)
        if frame.get("fatal"):
            self._left = 0
        return str(frame["error"]["code"] if "error" in frame else frame.get("type", "data"))

    async def _connect(self) -> None:
        self.leave()
        self._client = await RawClient.connect(self._port, path=self._path)
        # The socket knows its key from here on; what is hostile need not bring one.
        self._client.send(TEXT, json.dumps({"action": "ping", "api_key": self._key}).encode())
        assert await self._hear() == "pong"
        self._left = MESSAGES_A_SOCKET

    def leave(self) -> None:
        if self._client is not None:
            self._client.abort()


def answers(server: Process, path: str, key: str, messages: list[tuple[int, bytes]]) -> list[str]:
    async def run() -> list[str]:
        sent = Sent(server.port, path, key)
        heard = [await sent.answer(*message) for message in messages]
        sent.leave()
        await asyncio.sleep(0)  # for the abort
        return heard

    return asyncio.run(run())


def table(path: str) -> list[tuple[int, bytes]]:
    """Texts that are invalid everywhere or on this stream, and binary ones."""
    texts = [text for name, text in NOT_JSON.items() if is_utf8(text)]
    texts += [text.encode() for text in NO_OBJECT]
    texts += [text.encode() for _, text in WRONG_FIELDS]
    texts += [text.encode() for name, _, text in WRONG_ON if f"/ws/{name}" == path]
    fitting = [text for text in texts if len(text) <= 16 * 1024]
    return [(TEXT, text) for text in fitting] + [(BINARY, text) for text in fitting[:5]]


def is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.row("17, 20", "no deviation from the specification, no unhandled exception")
@pytest.mark.parametrize("path", PATHS)
def test_malformed_messages_are_refused_and_the_socket_stays_open(
    server: Process, key: str, path: str, tell: Tell
) -> None:
    messages = table(path)
    heard = answers(server, path, key, messages)
    wrong = [
        (said, text[:80])
        for said, (_, text) in zip(heard, messages, strict=True)
        if said != "invalid_message"
    ]
    tell(f"{len(messages)} messages; deviations: {len(wrong)}")
    assert wrong == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
positions = st.dictionaries(st.sampled_from([SYMBOL, "hostile", ""]), st.integers(), max_size=2)
# Each is as it should be half of the time.
fields = st.fixed_dictionaries(
    {"action": st.sampled_from(["subscribe", "unsubscribe", "list", "ping"]) | json_values},
    optional={
        "symbols": st.lists(st.sampled_from([SYMBOL, "*", "NOPE"]) | st.text(max_size=5)) | json_values,
        "id": st.integers() | st.text(max_size=70) | json_values,
        "features": st.lists(st.sampled_from(["seq", "lag", "latest", "speed"]), max_size=3) | json_values,
        "resume": st.fixed_dictionaries({"epoch": st.text(max_size=5), "positions": positions}) | json_values,
        "since": st.text(max_size=70) | json_values,
        "takeover": st.booleans() | json_values,
    },
)
messages = st.one_of(
    st.tuples(st.just(BINARY), st.binary(max_size=300)),
    st.text(max_size=300).map(lambda text: (TEXT, text.encode("utf-8", "replace"))),
    json_values.map(lambda value: (TEXT, json.dumps(value).encode())),
    fields.map(lambda named: (TEXT, json.dumps(named).encode())),
    fields.map(lambda named: (TEXT, json.dumps(named).encode())),
)
EXPECTED = {"invalid_message", "invalid_api_key", "subscribed", "unsubscribed", "subscriptions", "pong"}


@pytest.mark.row("17", "no wrong code, no unhandled exception")
@pytest.mark.parametrize("path", PATHS)
def test_random_messages_get_a_reply_or_an_error(
    server: Process, key: str, path: str, seed: int, tell: Tell
) -> None:
    check_random(server, key, path, seed, EXAMPLES, tell)


def check_random(server: Process, key: str, path: str, seed: int, examples: int, tell: Tell) -> None:
    drawn: list[tuple[int, bytes]] = []

    @seeded(seed + PATHS.index(path))
    @settings(
        max_examples=examples // len(PATHS) + 1,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(messages)
    def draw(message: tuple[int, bytes]) -> None:
        drawn.append(message)

    draw()
    heard = Counter(answers(server, path, key, drawn))
    tell(f"{heard.total()} messages: {dict(heard)}")
    assert set(heard) <= EXPECTED


@pytest.mark.row("18", "no deviation from the specification")
@pytest.mark.parametrize("path", PATHS)
def test_hostile_frames_are_closed_with_the_specified_code(server: Process, path: str, tell: Tell) -> None:
    async def close_of(sent: bytes) -> int:
        client = await RawClient.connect(server.port, path=path)
        client.writer.write(sent)
        code = await client.close_code()
        client.abort()
        return code

    heard = {name: asyncio.run(close_of(sent)) for name, (sent, _) in HOSTILE.items()}
    wrong = {name: code for name, code in heard.items() if code != HOSTILE[name][1]}
    tell(f"{len(heard)} hostile frames; deviations: {len(wrong)}")
    assert wrong == {}


HANDSHAKES: dict[str, tuple[Callable[[bytes], bytes], set[int]]] = {
    "other version": (lambda made: made.replace(b"Version: 13", b"Version: 12"), {400, 426}),
    "no key": (lambda made: without(made, b"Sec-WebSocket-Key"), {400}),
    "short key": (lambda made: made.replace(b"dGhlIHNhbXBsZSBub25jZQ==", b"c2hvcnQ="), {400}),
    "no version": (lambda made: without(made, b"Sec-WebSocket-Version"), {400, 426}),
    "POST": (lambda made: made.replace(b"GET ", b"POST "), {400, 404, 405}),
    "no Upgrade": (lambda made: without(made, b"Upgrade"), {400, 404, 426}),
    "other host": (lambda made: made.replace(b"Host: 127.0.0.1", b"Host: evil.example"), {400, 403}),
}


def without(made: bytes, name: bytes) -> bytes:
    return b"\r\n".join(line for line in made.split(b"\r\n") if not line.startswith(name + b":"))


@pytest.mark.row("18", "no deviation from the specification")
def test_hostile_handshakes_open_no_connection(server: Process, tell: Tell) -> None:
    async def status_of(sent: bytes) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(sent)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n"), PATIENCE_S)
        writer.close()
        await writer.wait_closed()
        return int(head.split()[1])

    made = handshake(path=MARKET)
    assert asyncio.run(status_of(made)) == 101
    heard = {name: asyncio.run(status_of(change(made))) for name, (change, _) in HANDSHAKES.items()}
    wrong = {name: status for name, status in heard.items() if status not in HANDSHAKES[name][1]}
    tell(f"{len(heard)} handshakes: {heard}; deviations: {len(wrong)}")
    assert wrong == {}


@pytest.mark.row("20", "only unknown symbols are rejected; known ones are served")
@pytest.mark.parametrize("unknown", [0, 1, 199])
def test_only_unknown_symbols_of_a_subscribe_are_rejected(
    server: Process, key: str, unknown: int, tell: Tell
) -> None:
    names = [f"NO{number}" for number in range(unknown)]

    async def run() -> dict[str, Any]:
        client = await RawClient.connect(server.port, path=MARKET)
        client.send(
            TEXT, json.dumps({"action": "subscribe", "symbols": [*names, SYMBOL], "api_key": key}).encode()
        )
        reply: dict[str, Any] = json.loads((await client.hear())[1])
        client.abort()
        return reply

    reply = asyncio.run(run())
    tell(f"{len(reply['rejected'])} of {unknown + 1} rejected")
    assert reply["symbols"] == [SYMBOL]
    assert [rejected["symbol"] for rejected in reply["rejected"]] == sorted(names, key=names.index)


@pytest.mark.row("21", "closed with code 4413; nothing lost to others")
def test_a_flood_of_subscribes_is_disconnected_and_costs_the_others_nothing(
    service: StreamService, server: Process, key: str
) -> None:
    message = {"action": "subscribe", "symbols": [SYMBOL], "api_key": key, "features": ["seq", "lag"]}
    flood = masked(TEXT, json.dumps(message).encode()) * 100

    async def run() -> None:
        others = await listen_many([server.port], MARKET, message, 5)
        for count in range(1, 4):
            client = await RawClient.connect(server.port, path=MARKET)
            client.writer.write(flood)
            assert await client.close_code() == 4413
            client.abort()
            await asyncio.to_thread(service.tick, SYMBOL, 10)
            for other in others:
                await until(partial(other.has_heard, SYMBOL, 10 * count))
        assert [(other.missed, other.ended.done()) for other in others] == [(0, False)] * 5
        for other in others:
            await other.leave()

    asyncio.run(run())
