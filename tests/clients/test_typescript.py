"""The TypeScript client against the real service: it compiles against the reference, asks, and resumes."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core import clock
from core.times import MINUTE_MS
from market.prices.candles import DAY_MS
from tests.client import Server, drop_sockets
from tests.contract.streams.publishing import publish_news, publish_signal
from tests.contract.streams.ticker import Ticker, ticking
from tests.factories import make_account, make_instrument, make_key, make_tier, make_user, put_quote
from tests.patience import PATIENCE_S

from .conftest import CLIENT

pytestmark = pytest.mark.served

DRIVER = "tests/clients/typescript.mjs"
SYMBOL = "EURUSD"
TYPES = "tests/clients/types/types.mts"


@pytest.fixture
def key(server: Server) -> str:
    make_instrument(SYMBOL)
    return make_key(make_account(tier=make_tier("roomy", streams=10)))


@pytest.fixture
def ticker(server: Server, key: str) -> Iterator[Ticker]:
    with ticking(server) as made:
        yield made


class Driver:
    """A running client, line by line."""

    def __init__(self, url: str, key: str, *words: str) -> None:
        # Node has a global WebSocket from 22 on, and before it behind this flag.
        command = ["node", "--experimental-websocket", "--no-warnings", DRIVER, url, key, *words]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        heard: dict[str, Any] = json.loads(self._process.stdout.readline())
        return heard

    def end(self) -> int:
        return self._process.wait(PATIENCE_S)


def test_types_are_those_of_the_reference(server: Server, modules: Path, tmp_path: Path) -> None:
    made = tmp_path / "schema.ts"
    tool = str(modules / "openapi-typescript/bin/cli.js")
    command = ["node", tool, f"{server.url}/openapi.json", "--output", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert made.read_text() == (CLIENT / "src/schema.ts").read_text(), "npm run types makes them anew"


def test_answers_and_refusals(built: None, server: Server, key: str) -> None:
    put_quote(SYMBOL, 1.0841, 1.08424)
    with Driver(server.url, key, "quote", "eurusd") as client:
        assert client.hear()["bid"] == 1.0841
    path = ("/api/market/{symbol}", '{"symbol": "EURUSD"}', '{"timeframe": "2h"}')
    with Driver(server.url, key, "get", *path) as client:
        refused = client.hear()
    assert (refused["name"], refused["code"], refused["field"]) == (
        "ApiError",
        "invalid_timeframe",
        "timeframe",
    )

    assert refused["requestId"]


def test_service_that_is_not_there_is_named_with_its_address(built: None) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with Driver(url, "tw_live_none", "quote", SYMBOL) as client:
            told = client.hear()
    assert told["name"] == "ServiceUnreachable"
    assert url in told["message"]
    assert "ECONNREFUSED" in told["message"]
    assert told["message"].endswith(
        ". Check the address (the option url), and whether the service is running."
    )


def test_client_names_itself(built: None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with Driver(url, "tw_live_none", "quote", SYMBOL):
            connection, _ = listening.accept()
            with connection:
                head = connection.recv(65_536).decode().lower()
    assert "user-agent: tickwire-typescript/" in head


def test_one_signal_and_those_of_a_publisher(built: None, server: Server, key: str) -> None:
    signal = publish_signal(SYMBOL, make_user("marta"))
    with Driver(server.url, key, "signal", signal) as client:
        assert (client.hear()["user"], [each["id"] for each in client.hear()["items"]]) == ("marta", [signal])


def test_broken_stream_goes_on_where_it_was(built: None, server: Server, key: str, ticker: Ticker) -> None:
    ticker(SYMBOL)
    with Driver(server.url, key, "watch", SYMBOL) as client:
        heard = [client.hear()["seq"]]
        for _ in range(3):
            drop_sockets(server)
            ticker(SYMBOL, 5)
            heard += [client.hear()["seq"] for _ in range(5)]
    assert heard == list(range(heard[0], heard[0] + 16))


def test_candles_go_on_where_they_were(built: None, server: Server, key: str, ticker: Ticker) -> None:
    now = clock.now_ms()
    day_ms = now - now % DAY_MS - DAY_MS
    ticker.at(SYMBOL, day_ms, day_ms + MINUTE_MS)
    with Driver(server.url, key, "candles", SYMBOL) as client:
        heard = [client.hear()]
        for minute in range(2, 5):
            drop_sockets(server)
            ticker.at(SYMBOL, day_ms + minute * MINUTE_MS)
            heard.append(client.hear())
    first = heard[0]["seq"]
    assert [(frame["timeframe"], frame["closed"], frame["seq"]) for frame in heard] == [
        ("1m", True, first + number) for number in range(4)
    ]


def test_what_cannot_be_had_again_is_named(built: None, server: Server, key: str, ticker: Ticker) -> None:
    ticker(SYMBOL)
    with Driver(server.url, key, "watch", SYMBOL) as client:
        client.hear()
        drop_sockets(server)
        ticker(SYMBOL, 1_500)
        assert client.hear() == {"missed": [SYMBOL]}


def test_signals_published_meanwhile_are_replayed(built: None, server: Server, key: str) -> None:
    publisher = make_user("marta")
    since = publish_signal(SYMBOL, publisher)
    published = [publish_signal(SYMBOL, publisher) for _ in range(2)]
    with Driver(server.url, key, "signals", since) as client:
        assert [client.hear()["id"] for _ in published] == published
        drop_sockets(server)
        later = publish_signal(SYMBOL, publisher)
        assert client.hear()["id"] == later


def test_news_published_meanwhile_are_replayed(built: None, server: Server, key: str) -> None:
    since = publish_news(SYMBOL, category="gold")
    publish_news(SYMBOL, category="forex")
    published = [publish_news(SYMBOL, category="gold") for _ in range(2)]
    with Driver(server.url, key, "news", since) as client:
        assert [str(client.hear()["id"]) for _ in published] == published
        drop_sockets(server)
        later = publish_news(SYMBOL, category="gold")
        assert str(client.hear()["id"]) == later


def test_bad_key_ends_the_stream(built: None, server: Server, key: str) -> None:
    with Driver(server.url, "tw_live_wrong", "watch", SYMBOL) as client:
        told = client.hear()
    assert (told["name"], told["code"]) == ("StreamError", "invalid_api_key")


def test_whoever_leaves_while_nothing_comes_keeps_no_socket(built: None, server: Server, key: str) -> None:
    with Driver(server.url, key, "leave", SYMBOL) as client:
        assert client.hear() == {"done": True}
        assert client.end() == 0


def test_answers_and_frames_have_the_types_of_the_reference(built: None, modules: Path) -> None:
    """Each line that must not compile is marked as such, so that tsc complains if it does."""
    options = ("--noEmit", "--strict", "--skipLibCheck", "--target", "ES2022", "--module", "NodeNext")
    command = ["node", str(modules / "typescript/bin/tsc"), *options, "--lib", "ES2022,DOM", TYPES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (0, "")


def test_older_node_is_told_what_a_stream_needs(built: None) -> None:
    # Node has a global WebSocket from 22 on, and this flag takes it away.
    has_one = subprocess.run(["node", "-p", "typeof WebSocket"], capture_output=True, text=True, check=True)
    flags = [] if has_one.stdout.strip() == "undefined" else ["--no-experimental-websocket"]
    command = ["node", "--no-warnings", *flags, DRIVER, "http://127.0.0.1:9", "tw_live_any", "watch", SYMBOL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    told = json.loads(done.stdout)
    assert told["name"] == "TickwireError"
    assert "use Node 22 or newer, or pass the class of the package ws" in told["message"]
