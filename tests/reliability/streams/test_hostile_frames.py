"""Row 17: what no honest client sends, to a real process on all three streams. How hostile frames, handshakes
and floods end, the tests of serving and of the contract show."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from tests.contract.streams.client import MARKET, ORDERFLOW
from tests.contract.streams.strangers import SIGNALS
from tests.market.streams.protocol.hostile import NO_OBJECT, NOT_JSON, WRONG_FIELDS, WRONG_ON
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation, Process
from tests.reliability.services.stream_services import StreamService, streaming
from tests.serving.websocket.wires import CLOSE, TEXT, RawClient

SYMBOL, EXAMPLES = "HOSTILE", 450
PATHS = (MARKET, ORDERFLOW, SIGNALS)
# With the tenth a socket ends, and twenty messages may come at once.
MESSAGES_A_SOCKET = 9
BINARY = 0x2
Message = tuple[int, bytes]


@pytest.fixture(scope="module")
def service(embedded_for_module: Installation) -> Iterator[StreamService]:
    with streaming(embedded_for_module, 1, [SYMBOL]) as running:
        yield running
        said = running.servers[0].log.read_text()
        assert "Traceback" not in said
        assert "could not be answered" not in said


async def next_answer(client: RawClient) -> tuple[str, bool]:
    """The code of an error or a close, or the type of another reply; and whether it is the last."""
    opcode, payload = await client.hear()
    while opcode not in (TEXT, CLOSE):
        opcode, payload = await client.hear()
    if opcode == CLOSE:
        return f"closed with {int.from_bytes(payload[:2], 'big')}", True
    frame = json.loads(payload)
    answer = frame["error"]["code"] if "error" in frame else frame.get("type", "data")
    return str(answer), bool(frame.get("fatal"))


async def answers(server: Process, path: str, key: str, messages: list[Message]) -> list[str]:
    heard: list[str] = []
    while len(heard) < len(messages):
        client = await RawClient.connect(server.port, path=path)
        # The socket knows its key from here on; what is hostile need not bring one.
        client.send(TEXT, json.dumps({"action": "ping", "api_key": key}).encode())
        assert (await next_answer(client))[0] == "pong"
        for message in messages[len(heard) : len(heard) + MESSAGES_A_SOCKET]:
            client.send(*message)
            said, is_last = await next_answer(client)
            heard.append(said)
            if is_last:
                break
        client.abort()
    await asyncio.sleep(0)  # for the abort
    return heard


def table(path: str) -> list[Message]:
    """Texts that are invalid everywhere or on this stream, and binary ones."""
    texts = [text for text in NOT_JSON.values() if "�" not in text.decode("utf-8", "replace")]
    texts += [text.encode() for text in NO_OBJECT]
    texts += [text.encode() for _, text in WRONG_FIELDS]
    texts += [text.encode() for name, _, text in WRONG_ON if f"/ws/{name}" == path]
    fitting = [text for text in texts if len(text) <= 16 * 1024]
    return [(TEXT, text) for text in fitting] + [(BINARY, text) for text in fitting[:5]]


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
objects = fields.map(lambda named: (TEXT, json.dumps(named).encode()))
messages = st.one_of(
    st.tuples(st.just(BINARY), st.binary(max_size=300)),
    st.text(max_size=300).map(lambda text: (TEXT, text.encode("utf-8", "replace"))),
    json_values.map(lambda value: (TEXT, json.dumps(value).encode())),
    objects,
    objects,
)
EXPECTED = {"invalid_message", "invalid_api_key", "subscribed", "unsubscribed", "subscriptions", "pong"}


@pytest.mark.row("17", "no wrong code, no unhandled exception")
@pytest.mark.parametrize("path", PATHS)
def test_malformed_and_random_messages_get_an_error_or_a_reply(
    service: StreamService, path: str, seed: int, tell: Tell
) -> None:
    check(service, path, seed, EXAMPLES, tell)


def check(service: StreamService, path: str, seed: int, examples: int, tell: Tell) -> None:
    drawn: list[Message] = []

    @seeded(seed + PATHS.index(path))
    @settings(max_examples=examples // len(PATHS) + 1, database=None, suppress_health_check=list(HealthCheck))
    @given(messages)
    def draw(message: Message) -> None:
        drawn.append(message)

    draw()
    server, key, malformed = service.servers[0], service.make_key(), table(path)
    refused = Counter(asyncio.run(answers(server, path, key, malformed)))
    heard = Counter(asyncio.run(answers(server, path, key, drawn)))
    tell(f"{len(malformed)} malformed messages: {dict(refused)}; {heard.total()} random ones: {dict(heard)}")
    assert refused == {"invalid_message": len(malformed)}
    assert set(heard) <= EXPECTED
