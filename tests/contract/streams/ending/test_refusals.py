"""What a stream refuses, with which frame, and with which code it closes."""

from __future__ import annotations

import json

import httpx
import pytest
from django.conf import settings
from websockets.exceptions import InvalidStatus

from accounts.key_text import generate_key
from market.streams.sessions.session import StreamSession
from tests.client import Server
from tests.contract.streams.client import MARKET, ORDERFLOW, Socket, an_hour_passing, code_of, shortened
from tests.contract.streams.conftest import Open
from tests.contract.streams.ticker import Ticker
from tests.factories import make_account, make_key, make_tier, make_user
from tests.patience import PATIENCE_S
from tests.staff import staff_client

INVALID = ("invalid_message", False, False)


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
    monkeypatch.setattr("market.streams.sessions.session.passed_ms", lambda: 1_000_000)
    socket = opened(key=key)
    assert [code_of(socket.refused("nonsense"))[1] for _ in range(10)] == [False] * 9 + [True]
    assert socket.closed == 4400


def test_refusal_echoes_the_id_of_its_message(opened: Open, key: str) -> None:
    assert opened(key=key).refused({"action": "subscribe", "id": 7})["id"] == 7


@pytest.mark.parametrize("wrong", ["unknown", "nonsense", "", "revoked"])
def test_bad_key_closes_with_4401(opened: Open, path: str, symbol: str, wrong: str) -> None:
    key = generate_key() if wrong == "unknown" else wrong
    if wrong == "revoked":
        key = make_key(make_account(tier=make_tier("roomy")), revoked_at="2026-11-01T00:00:00Z")
    socket = opened(path)
    refused = socket.refused(json.dumps({"action": "subscribe", "symbols": [symbol], "api_key": key}))
    assert (code_of(refused), refused["error"]["status"]) == (("invalid_api_key", True, False), 401)
    assert socket.closed == 4401


def test_who_never_subscribes_is_not_kept(opened: Open, path: str) -> None:
    with shortened(StreamSession, "FIRST_WITHIN_S", 0.05):
        socket = opened(path)
        assert code_of(socket.refused()) == ("subscribe_timeout", True, True)
        assert socket.closed == 4408


def test_only_who_subscribes_in_time_is_kept(opened: Open, service: Server, key: str, symbol: str) -> None:
    with an_hour_passing(service, StreamSession):
        kept, authenticated = opened(key=key), opened(key=key)
        kept.subscribe(symbol)
        assert authenticated.is_open
    assert authenticated.refused()["error"]["code"] == "subscribe_timeout"
    assert kept.is_open


def staff_cookie(service: Server) -> str:
    """Of a session that opens the back office."""
    client = staff_client(make_user(is_staff=True, is_superuser=True))
    cookie = f"{settings.SESSION_COOKIE_NAME}={client.session.session_key}"
    page = httpx.get(f"{service.url}/admin/", headers={"Cookie": cookie}, timeout=PATIENCE_S)
    assert (page.status_code, "Log out" in page.text) == (200, True)
    return cookie


def test_cookies_alone_are_no_subscribe(service: Server) -> None:
    with (
        shortened(StreamSession, "FIRST_WITHIN_S", 0.05),
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
    monkeypatch.setattr("market.streams.sessions.session.passed_ms", lambda: 1_000_000)
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


def test_binary_is_invalid_although_its_text_is_not(opened: Open, key: str) -> None:
    assert "text" in opened(key=key).refused(b'{"action":"ping"}')["error"]["message"]


def test_other_host_gets_no_socket(service: Server, path: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        Socket(service, path, host="evil.example")
    assert refused.value.response.status_code == 403


def test_path_may_end_with_a_slash(opened: Open, path: str, key: str) -> None:
    assert opened(f"{path}/", key=key).ask({"action": "ping"})["type"] == "pong"


@pytest.mark.parametrize("other", ["/", "/ws", "/ws/prices", "/ws/market//", "/ws/market/EURUSD", "/market"])
def test_other_path_gets_no_socket(service: Server, other: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        Socket(service, other)
    assert refused.value.response.status_code == 404


def test_end_of_one_socket_leaves_the_others(opened: Open, ticker: Ticker, key: str, symbol: str) -> None:
    ended, kept = opened(), opened(key=key)
    kept.subscribe(symbol)
    ended.refused({"action": "ping"})
    assert ended.closed == 4401
    ticker(symbol)
    assert kept.hear()["symbol"] == symbol


def test_faults_never_close_with_1000(opened: Open) -> None:
    for path in (MARKET, ORDERFLOW):
        socket = opened(path)
        socket.refused({"action": "list"})
        assert socket.closed not in (1000, 1011)
