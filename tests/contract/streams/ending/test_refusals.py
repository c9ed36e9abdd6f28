"""What a stream refuses, with which frame, and with which code it closes."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from django.conf import settings as django_settings
from pytest_django.fixtures import Settings
from websockets.exceptions import InvalidStatus

from accounts.key_text import generate_key
from accounts.models import Account
from market.streams.consumer import StreamConsumer
from tests.client import Server
from tests.contract.streams.client import MARKET, ORDERFLOW, Socket, an_hour_passing, code_of, shortened
from tests.contract.streams.conftest import Open
from tests.contract.streams.ticker import Ticker
from tests.factories import make_account, make_key, make_tier, make_user
from tests.patience import PATIENCE_S
from tests.staff import staff_client

INVALID = ("invalid_message", False, False)
TIMEFRAMES = ["1m", "5m", "15m", "1h", "4h", "1d"]
CATEGORIES = ["forex", "gold", "crypto", "macro"]


def masked(text: bytes) -> bytes:
    """One short text frame, under the mask 0."""
    return bytes((0x81, 0x80 | len(text), 0, 0, 0, 0)) + text


MESSAGES: list[tuple[str | bytes, str | None]] = [
    ("nonsense", None),
    ("", None),
    ("5", None),
    ("[]", None),
    (b'{"action":"ping"}', None),
    (b"\xff\x00", None),
    ("[" * 10_000, None),
    ('{"action":"jump"}', "action"),
    ("{}", "action"),
    ('{"action":5}', "action"),
    ('{"action":"ping","action":"list"}', "action"),
    ('{"action":"subscribe","symbols":"EURUSD"}', "symbols"),
    ('{"action":"subscribe","symbols":[]}', "symbols"),
    ('{"action":"subscribe","symbols":[5]}', "symbols"),
    ('{"action":"ping","id":1.5}', "id"),
    ('{"action":"ping","id":18446744073709551616}', "id"),
    ('{"action":"ping","api_key":5}', "api_key"),
    ('{"action":"subscribe","symbols":["X"],"features":["speed"]}', "features"),
    ('{"action":"subscribe","symbols":["X"],"takeover":1}', "takeover"),
    ('{"action":"subscribe","symbols":["X"],"resume":{"epoch":"x"}}', "resume"),
    ('{"action":"subscribe","symbols":["X"],"since":"x"}', "since"),
]


def test_what_would_have_no_effect_is_refused(
    opened: Open, key: str, symbol: str, settings: Settings
) -> None:
    settings.DEMO = True
    timeframes, categories = {"allowed": TIMEFRAMES}, {"allowed": CATEGORIES}
    position = {"epoch": "e", "positions": {}}
    table: list[tuple[str, str, Any, dict[str, Any]]] = [
        *(
            ("/ws/candles", "timeframes", value, timeframes)
            for value in ([], ["2m"], ["1m", "1w"], "1m", [60])
        ),
        *(
            ("/ws/candles", "resume", {"epoch": "e", "positions": {each: 1}}, {})
            for each in ("X", "X/2m", "X/")
        ),
        ("/ws/candles", "events", ["signal.closed"], {"allowed": ["forming"]}),
        ("/ws/candles", "features", ["chaos:gap"], {}),
        *(("/ws/news", "categories", value, categories) for value in ([], ["stocks"], "gold")),
        ("/ws/news", "events", ["signal.closed"], {}),
        ("/ws/news", "since", 5, {}),
        *((path, "resume", position, {}) for path in ("/ws/news", "/ws/signals")),
        *((path, "categories", ["gold"], {}) for path in ("/ws/signals", "/ws/market")),
        *((path, "since", "5", {}) for path in ("/ws/market", "/ws/orderflow", "/ws/candles")),
    ]
    for path, field, value, told in table:
        with opened(path, key=key) as socket:
            refused = socket.refused({"action": "subscribe", "symbols": [symbol], field: value, "id": 3})
            assert (code_of(refused), refused["id"]) == (INVALID, 3)
            assert refused["error"].items() >= {"field": field, **told}.items(), (path, field, value)


@pytest.mark.parametrize(("message", "field"), MESSAGES)
def test_invalid_message_is_told_and_the_next_is_taken(
    opened: Open, key: str, message: str | bytes, field: str | None
) -> None:
    socket = opened(key=key)
    refused = socket.refused(message)
    assert (code_of(refused), refused["error"]["status"]) == (INVALID, 400)
    assert refused["error"].get("field") == field
    assert socket.is_open


def test_tenth_invalid_message_within_a_minute_ends_it(
    opened: Open, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("market.streams.consumer.passed_ms", lambda: 1_000_000)
    socket = opened(key=key)
    assert [code_of(socket.refused("nonsense"))[1] for _ in range(10)] == [False] * 9 + [True]
    assert socket.closed == 4400


@pytest.mark.parametrize("wrong", ["unknown", "nonsense", "", "revoked"])
def test_bad_key_closes_with_4401_and_no_other_socket(
    opened: Open, path: str, symbol: str, wrong: str, account: Account
) -> None:
    good, key = make_key(account), generate_key() if wrong == "unknown" else wrong
    if wrong == "revoked":
        key = make_key(make_account(tier=make_tier("roomy")), revoked_at="2026-11-01T00:00:00Z")
    socket, kept = opened(path), opened(path, key=good)
    refused = socket.refused(json.dumps({"action": "subscribe", "symbols": [symbol], "api_key": key}))
    assert (code_of(refused), refused["error"]["status"]) == (("invalid_api_key", True, False), 401)
    assert socket.closed == 4401
    assert kept.is_open


def test_who_never_subscribes_is_not_kept(opened: Open, path: str) -> None:
    with shortened(StreamConsumer, "FIRST_WITHIN_S", 0.05):
        socket = opened(path)
        assert code_of(socket.refused()) == ("subscribe_timeout", True, True)
        assert socket.closed == 4408


def test_only_who_subscribes_in_time_is_kept(opened: Open, service: Server, key: str, symbol: str) -> None:
    with an_hour_passing(service, StreamConsumer):
        kept, authenticated = opened(key=key), opened(key=key)
        kept.subscribe(symbol)
        assert authenticated.is_open
    assert authenticated.refused()["error"]["code"] == "subscribe_timeout"
    assert kept.is_open


def staff_cookie(service: Server) -> str:
    """Of a session that opens the back office."""
    client = staff_client(make_user(is_staff=True, is_superuser=True))
    cookie = f"{django_settings.SESSION_COOKIE_NAME}={client.session.session_key}"
    page = httpx.get(f"{service.url}/admin/", headers={"Cookie": cookie}, timeout=PATIENCE_S)
    assert (page.status_code, "Log out" in page.text) == (200, True)
    return cookie


def test_cookies_alone_are_no_subscribe(service: Server) -> None:
    with (
        shortened(StreamConsumer, "FIRST_WITHIN_S", 0.05),
        Socket(service, Cookie=staff_cookie(service), Origin="https://evil.example") as socket,
    ):
        assert [frame["error"]["code"] for frame in socket.hear_all()] == ["subscribe_timeout"]
        assert socket.closed == 4408


def test_subscribe_with_a_cookie_instead_of_a_key_brings_no_data(
    service: Server, ticker: Ticker, symbol: str, path: str
) -> None:
    with Socket(service, path, Cookie=staff_cookie(service), Origin="https://evil.example") as socket:
        socket.send({"action": "subscribe", "symbols": [symbol]})
        ticker(symbol)
        assert [frame["error"]["code"] for frame in socket.hear_all()] == ["invalid_api_key"]
        assert socket.closed == 4401


PING = masked(b'{"action":"ping"}')


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        (PING * 60, {20}),
        # The protocol may close at so many before the session has answered twenty.
        (PING * 1_000, set(range(21))),
        (b"\x89\x80\0\0\0\0" * 1_000, {0}),
    ],
    ids=["sixty", "a thousand", "pings of the protocol"],
)
def test_twenty_messages_at_once_are_taken_and_more_are_not(
    opened: Open, key: str, monkeypatch: pytest.MonkeyPatch, sent: bytes, answered: set[int]
) -> None:
    # A slow machine reads them so slowly that more are allowed.
    monkeypatch.setattr("market.streams.consumer.passed_ms", lambda: 1_000_000)
    socket = opened(key=key)
    socket.connection.socket.sendall(sent)
    *pongs, refused = socket.hear_all()
    assert len(pongs) in answered
    assert code_of(refused) == ("too_many_messages", True, True)
    assert socket.closed == 4413


def test_text_that_is_no_utf8_closes_with_1007(opened: Open, key: str) -> None:
    socket = opened(key=key)
    socket.connection.socket.sendall(masked(b"\xff\xfe"))
    assert socket.closed == 1007


def test_message_above_16_kib_closes_with_1009(opened: Open, key: str) -> None:
    """On both streams, as text and as binary."""
    sockets = [opened(path, key=key) for path in (MARKET, ORDERFLOW) for _ in range(2)]
    ping = json.dumps({"action": "ping"})
    for number, socket in enumerate(sockets):
        assert socket.ask(ping + " " * (16 * 1024 - len(ping)))["type"] == "pong"
        text = ping + " " * (16 * 1024 + 1 - len(ping))
        socket.send(text if number % 2 else text.encode())
    assert [socket.closed for socket in sockets] == [1009] * 4


def test_other_host_gets_no_socket(service: Server, path: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        Socket(service, path, host="evil.example")
    assert refused.value.response.status_code == 403
