"""/ws: all streams on one socket, each as on its own path and named in its frames."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from accounts.keys.issuing import revoke_key
from accounts.models import Account
from instruments.models import Instrument
from instruments.saving import save
from market.metrics import StreamMetrics
from market.streams import market_streams as streams
from market.streams.authenticated import authenticated_sockets
from market.streams.consumer import StreamConsumer, one_socket
from market.streams.protocol.messages import KINDS, ONE_SOCKET, TOGETHER
from tests.client import Api, Server
from tests.contract.streams.client import MARKET, ORDERFLOW, Frame, Socket, code_of, shortened
from tests.contract.streams.conftest import Open
from tests.contract.streams.ending.test_slow import MANY, SEEN_WITHIN_S, last_words, ticks
from tests.contract.streams.publishing import publish_news
from tests.contract.streams.ticker import Ticker
from tests.factories import make_tier
from tests.patience import PATIENCE_S, until
from tests.serving.websocket.wires import TEXT, RawClient
from tests.signals_feed.published_signals import make_published

STREAMS: list[str] = [kind.name for kind in KINDS]
NUMBERED = [kind.name for kind in KINDS if kind.is_numbered]
MARKET_FIELDS = {"symbol", "bid", "ask", "spread", "time", "volume"}


def publish_all(ticker: Ticker, symbol: str) -> None:
    """At least one frame of each stream."""
    ticker.past_a_minute(symbol)
    make_published(Instrument.objects.get(symbol=symbol))
    publish_news(symbol)


def follow_all(socket: Socket, symbol: str, **fields: Any) -> dict[str, Frame]:
    return {name: socket.subscribe(symbol, stream=name, **fields) for name in STREAMS}


def hear_each(socket: Socket, names: list[str] = STREAMS) -> dict[str, Frame]:
    """The last frame of each stream, when all have come."""
    heard: dict[str, Frame] = {}
    while heard.keys() != set(names):
        frame = socket.hear()
        heard[frame["stream"]] = frame
    return heard


def test_five_streams_come_together_and_count_as_one(
    opened: Open, service: Server, ticker: Ticker, key: str, symbol: str
) -> None:
    socket = opened(ONE_SOCKET, key=key)
    replies = follow_all(socket, symbol, features=["seq"], id=7)
    assert {name: (reply["stream"], reply["symbols"], reply["id"]) for name, reply in replies.items()} == {
        name: (name, [symbol], 7) for name in STREAMS
    }
    publish_all(ticker, symbol)
    heard = hear_each(socket)
    assert heard["market"].keys() == {"stream", "seq", *MARKET_FIELDS}
    assert heard["news"].keys() >= {"id", "title"}
    with Api(service, key) as api:
        streams = api.ask("/api/limits").json()["streams"]
    assert [each["path"] for each in streams["open"]] == [ONE_SOCKET]


@pytest.mark.parametrize("kind", KINDS, ids=STREAMS)
def test_frames_are_those_of_the_own_path_with_the_name_in_front(
    opened: Open, ticker: Ticker, key: str, symbol: str, kind: Any
) -> None:
    own, together = opened(kind.path, key=key), opened(ONE_SOCKET, key=key)
    wanted = {"features": ["seq", "snapshot"], "stream": kind.name}
    assert own.subscribe(symbol, **wanted).keys() == together.subscribe(symbol, **wanted).keys()
    publish_all(ticker, symbol)
    instrument = Instrument.objects.get(symbol=symbol)
    instrument.active = False
    save(instrument, by="test")
    is_notice = False
    while not is_notice:
        plain = str(own.connection.recv(PATIENCE_S))
        assert together.connection.recv(PATIENCE_S) == f'{{"stream":"{kind.name}",{plain[1:]}'
        is_notice = '"deactivated"' in plain


def test_each_stream_resumes_from_its_own_place(opened: Open, ticker: Ticker, key: str, symbol: str) -> None:
    first, again = opened(ONE_SOCKET, key=key), opened(ONE_SOCKET, key=key)
    replies = follow_all(first, symbol, features=["seq"])
    publish_all(ticker, symbol)
    last = hear_each(first)
    for name in STREAMS:
        place: dict[str, Any] = {"since": replies[name].get("since")}
        if name in NUMBERED:
            named = f"{symbol}/1m" if name == "candles" else symbol
            positions = {named: last[name]["seq"] - 1}
            place = {"features": ["seq"], "resume": {"epoch": replies[name]["epoch"], "positions": positions}}
        assert again.subscribe(symbol, stream=name, **place)["recovered"] is True
        assert again.hear() == last[name]


def test_two_long_replays_at_once_both_arrive(opened: Open, ticker: Ticker, key: str, symbol: str) -> None:
    ticker(symbol)
    epoch = opened(key=key).subscribe(symbol, features=["seq"])["epoch"]
    ticker(symbol, 900)
    socket = opened(ONE_SOCKET, key=key)
    place = {"features": ["seq"], "resume": {"epoch": epoch, "positions": {symbol: 1}}}
    for name in ("market", "orderflow"):
        socket.send({"action": "subscribe", "stream": name, "symbols": [symbol], **place})
    numbers: dict[str, list[int]] = {"market": [], "orderflow": []}
    while sum(map(len, numbers.values())) < 900 + 899:
        frame = socket.hear()
        if "seq" in frame:
            numbers[frame["stream"]].append(frame["seq"])
    assert numbers == {"market": list(range(2, 902)), "orderflow": list(range(2, 901))}


def test_options_and_replies_are_of_one_stream(opened: Open, ticker: Ticker, key: str, symbol: str) -> None:
    socket = opened(ONE_SOCKET, key=key)
    socket.subscribe(symbol, stream="market", features=["seq"])
    assert "epoch" not in socket.subscribe(stream="orderflow")
    listed = {"type": "subscriptions", "id": 1}
    for name, symbols in (("market", [symbol]), ("orderflow", ["*"]), ("signals", [])):
        told = socket.ask({"action": "list", "stream": name, "id": 1})
        assert told == listed | {"stream": name, "symbols": symbols}
    ticker(symbol, 2)
    heard = hear_each(socket, ["market", "orderflow"])
    assert ("seq" in heard["market"], "seq" in heard["orderflow"]) == (True, False)
    left = socket.ask({"action": "unsubscribe", "stream": "orderflow"})
    assert left == {"type": "unsubscribed", "stream": "orderflow", "symbols": []}
    ticker(symbol)
    frame = socket.hear()
    assert (frame["stream"], frame["seq"]) == ("market", 3)
    assert socket.ask({"action": "ping", "id": 2}) == {"type": "pong", "id": 2}


def test_gap_is_of_the_stream_that_lost_its_place_and_counts(
    opened: Open, service: Server, key: str, symbol: str
) -> None:
    socket = opened(ONE_SOCKET, key=key)
    socket.subscribe(symbol, stream="market", features=["seq"])
    socket.subscribe(symbol, stream="orderflow")

    async def begin_again() -> None:
        for stream in (streams.order_flow, streams.prices):
            epoch = stream.recent.epoch
            stream.begin("another", [])
            stream.begin(epoch, [])

    service.run(begin_again())
    heard = [socket.hear() for _ in range(2)]
    assert {(gap["type"], gap["stream"], *gap["positions"]) for gap in heard} == {("gap", "market", symbol)}
    assert socket.is_open


def test_heartbeat_is_of_the_socket_and_any_frame_breaks_the_silence(
    opened: Open, service: Server, ticker: Ticker, key: str, symbol: str
) -> None:
    async def look_in(seconds: float) -> None:
        for session in authenticated_sockets.all():
            session.check_time(asyncio.get_running_loop().time() + seconds)

    socket = opened(ONE_SOCKET, key=key)
    with shortened(StreamConsumer, "HEARTBEAT_AFTER_S", 36_000.0):
        socket.subscribe(symbol, stream="signals", features=["heartbeat"])
        socket.subscribe(symbol, stream="market")
        service.run(look_in(18_000))
        ticker(symbol)
        service.run(look_in(37_000))
        assert socket.hear()["stream"] == "market"
        assert socket.hear().keys() == {"type", "time"}


def test_metrics_count_it_under_a_name_of_its_own(opened: Open, key: str, symbol: str) -> None:
    opened(ONE_SOCKET, key=key).subscribe(symbol, stream="market")
    connections = next(iter(StreamMetrics().collect()))
    open_sockets = {sample.labels["stream"]: sample.value for sample in connections.samples}
    assert open_sockets == dict.fromkeys(STREAMS, 0) | {TOGETHER: 1}


def test_takeover_replaces_the_oldest_of_its_kind_else_the_oldest_socket(
    opened: Open, account: Account, key: str, symbol: str
) -> None:
    account.tier = make_tier("three", streams=3)
    account.save()
    oldest, first, second = (opened(path, key=key) for path in (MARKET, ONE_SOCKET, ONE_SOCKET))
    for socket in (oldest, first, second):
        socket.subscribe(symbol, stream="market")
        socket.subscribe(symbol, stream="orderflow")
    refused = opened(ONE_SOCKET, key=key).refused(
        {"action": "subscribe", "stream": "market", "symbols": [symbol]}
    )
    assert code_of(refused) == ("stream_limit_exceeded", True, True)
    assert "stream" not in refused
    newcomer = opened(ONE_SOCKET, key=key)
    assert newcomer.subscribe(symbol, stream="market", takeover=True)["type"] == "subscribed"
    refused = first.refused()
    assert (code_of(refused), first.closed) == (("taken_over", True, False), 4409)
    assert "stream" not in refused
    assert (oldest.is_open, second.is_open) == (True, True)
    opened(ORDERFLOW, key=key).subscribe(symbol, takeover=True)
    assert (code_of(oldest.refused()), second.is_open) == (("taken_over", True, False), True)


def test_revoked_key_ends_the_socket_with_all_its_streams(
    opened: Open, service: Server, account: Account, key: str, symbol: str
) -> None:
    socket = opened(ONE_SOCKET)
    socket.subscribe(symbol, stream="market", api_key=key)
    socket.subscribe(symbol, stream="news")
    revoke_key(account.keys.get(), by="test")
    refused = socket.refused()
    assert (code_of(refused), socket.closed) == (("invalid_api_key", True, False), 4401)
    assert "stream" not in refused


NO_NAMES: list[Any] = ["", "Market", "market\0", "ingest", 5, 10**400, None, ["market"], {}, True]
UNNAMED = {"field": "stream", "allowed": STREAMS}


@pytest.mark.parametrize(
    ("message", "stream", "details"),
    [
        ({"action": "subscribe", "symbols": ["A"]}, None, UNNAMED),
        ({"action": "list"}, None, UNNAMED),
        *(({"action": "unsubscribe", "stream": name}, None, UNNAMED) for name in NO_NAMES),
        ({"action": "subscribe", "stream": "market"}, "market", {"field": "symbols"}),
        ({"action": "subscribe", "stream": "market", "symbols": ["*"]}, "market", {"field": "symbols"}),
        ({"action": "subscribe", "stream": "news", "resume": {"epoch": "", "positions": {}}}, "news", {}),
        ({"action": "subscribe", "stream": "orderflow", "since": "5"}, "orderflow", {"field": "since"}),
        ({"action": "subscribe", "stream": "news", "events": ["forming"]}, "news", {"field": "events"}),
        ({"action": "dance", "stream": "market"}, None, {"field": "action"}),
        ({"stream": "market"}, None, {"field": "action"}),
        ('{"action":"list","stream":"market","stream":"news"}', "news", {"field": "stream"}),
        ('{"action":"ping","action":"list"}', None, UNNAMED),
        ('{"action":"list","action":"ping"}', None, {"field": "action"}),
        ("[" * 9_000, None, {}),
        ("5", None, {}),
    ],
)  # fmt: skip
def test_refused_message_says_its_stream_and_leaves_the_others(
    opened: Open, ticker: Ticker, key: str, symbol: str, message: Any, stream: str | None, details: Frame
) -> None:
    socket = opened(ONE_SOCKET, key=key)
    socket.subscribe(symbol, stream="market")
    if isinstance(message, dict):
        message = {"id": "x", **message}
    refused = socket.refused(message)
    assert code_of(refused) == ("invalid_message", False, False)
    assert (refused.get("stream"), refused.get("id")) == (stream, "x" if isinstance(message, dict) else None)
    assert refused["error"].items() >= details.items()
    ticker(symbol)
    assert socket.hear()["stream"] == "market"


def test_stream_that_a_ping_or_another_path_names_is_ignored(opened: Open, key: str, symbol: str) -> None:
    socket, market = opened(ONE_SOCKET, key=key), opened(MARKET, key=key)
    assert socket.ask({"action": "ping", "stream": 5}) == {"type": "pong"}
    assert market.subscribe(symbol, stream=5)["stream"] == "market"


def test_socket_without_a_subscribe_on_any_stream_is_closed(opened: Open, key: str) -> None:
    with shortened(StreamConsumer, "FIRST_WITHIN_S", 0.05):
        socket = opened(ONE_SOCKET, key=key)
        assert code_of(socket.refused()) == ("subscribe_timeout", True, True)
    assert socket.closed == 4408


def test_what_waits_for_a_slow_reader_counts_for_all_its_streams_together(
    service: Server, ticker: Ticker, key: str, symbol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serving.websocket.protocol.STALLED_LINGER_S", PATIENCE_S)

    async def run() -> tuple[Frame, int]:
        client = await RawClient.connect(service.port, 4096, ONE_SOCKET)
        given_up = one_socket.slow.given_up
        for name in ("market", "orderflow"):
            message = {"action": "subscribe", "stream": name, "symbols": [symbol], "api_key": key}
            client.send(TEXT, json.dumps(message).encode())
            assert json.loads((await client.hear())[1])["stream"] == name
        await ticks(ticker, symbol, MANY)
        await until(lambda: one_socket.slow.given_up > given_up, SEEN_WITHIN_S)
        try:
            return await last_words(client)
        finally:
            client.abort()

    refused, code = asyncio.run(run())
    assert (refused["error"]["code"], code, "stream" in refused) == ("slow_consumer", 4430, False)
