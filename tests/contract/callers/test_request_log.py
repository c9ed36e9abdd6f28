"""What is logged of a request: fields, and nothing of the many that are answered as they should be."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest
from django.conf import settings as django_settings
from pytest_django.fixtures import Settings
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from accounts.key_text import generate_key
from config.logging import LineFormatter
from tests.client import Api, Server
from tests.contract.raw import exchange
from tests.patience import PATIENCE_S, wait_until


class Heard:
    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog

    def fields(self) -> list[dict[str, Any]]:
        """Of each request that has a line; a line on how many had none may come at any time."""
        records = [each.__dict__ for each in self._caplog.records if each.name == "accounts.access"]
        return [each for each in records if "count" not in each]

    def of(self, **wanted: object) -> dict[str, Any]:
        """The one line that has them."""

        def found() -> list[dict[str, Any]]:
            return [each for each in self.fields() if wanted.items() <= each.items()]

        wait_until(found)
        (line,) = found()
        return line


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture, one_moment: None) -> Iterator[Heard]:
    with caplog.at_level(logging.INFO, "accounts.access"):
        yield Heard(caplog)


@pytest.mark.parametrize("path", ["/api/symbols", "/livez", "/healthz", "/readyz"])
def test_success_of_the_api_and_a_probe_are_not_logged(shared: Api, heard: Heard, path: str) -> None:
    shared.ask(path)
    shared.ask("/api/market/NOTHING/quote")
    heard.of(status=404)
    assert len(heard.fields()) == 1


def test_success_is_logged_when_that_is_asked_for_or_it_is_slow(
    shared: Api, heard: Heard, settings: Settings
) -> None:
    settings.ACCESS_LOG = True
    request_id = shared.ask("/api/symbols").headers["X-Request-Id"]
    line = heard.of(path="/api/symbols")
    assert (line["route"], line["status"], line["request_id"]) == ("/api/symbols", 200, request_id)
    settings.ACCESS_LOG, settings.SLOW_REQUEST_MS = False, 0.000001
    shared.ask("/api/symbols")
    line = heard.of(slow=True)
    assert (line["levelname"], line["status"]) == ("WARNING", 200)


def test_refusal_says_who_asked_for_what_and_why_it_was_refused(shared: Api, heard: Heard) -> None:
    request_id = shared.ask("/api/market/NOTHING/quote").headers["X-Request-Id"]
    line = heard.of(status=404)
    assert (line["method"], line["path"]) == ("GET", "/api/market/NOTHING/quote")
    assert (line["route"], line["code"]) == ("/api/market/{symbol}/quote", "symbol_not_found")
    assert (line["address"], line["request_id"]) == ("127.0.0.1", request_id)
    assert line["key"] == shared.key[:16]
    assert line["account"] > 0
    assert line["ms"] > 0


def test_key_that_is_not_ours_is_not_shown_and_a_wrong_one_by_its_prefix(shared: Api, heard: Heard) -> None:
    wrong = generate_key()
    for key in (wrong, "my password"):
        shared.ask("/api/symbols", key=key)
    assert [line.get("key") for line in heard.fields()] == [wrong[:16], None]


def test_page_is_logged_with_its_route_and_its_files_are_not(shared: Api, heard: Heard) -> None:
    answer = httpx.get(f"{shared.base_url}/docs/computed?x=secret", timeout=PATIENCE_S)
    line = heard.of(route="/docs/computed")
    assert (line["path"], line["status"]) == ("/docs/computed", 200)
    assert line["request_id"] == answer.headers["X-Request-Id"]
    assert len(heard.fields()) == 1
    assert httpx.get(f"{shared.base_url}/metrics", headers=token(), timeout=PATIENCE_S).status_code == 200
    assert len(heard.fields()) == 1


def token() -> dict[str, str]:
    return {"Authorization": f"Bearer {django_settings.METRICS_TOKEN}"}


def test_stream_that_is_refused_is_logged(shared: Api, heard: Heard) -> None:
    wrong = generate_key()
    address = str(shared.base_url).replace("http", "ws", 1)
    with connect(f"{address}/ws/market", open_timeout=PATIENCE_S) as stream, suppress(ConnectionClosed):
        stream.send(json.dumps({"action": "list", "api_key": wrong}))
        for _ in stream:
            pass
    line = heard.of(route="/ws/market")
    assert line["msg"] == "/ws/market closed with 4401 invalid_api_key"
    assert line["address"] == "127.0.0.1"


def test_what_is_no_request_is_logged(shared_server: Server, heard: Heard) -> None:
    exchange(shared_server, b"GET / HTTP/9.9\r\n\r\n")
    assert heard.of(reason="malformed")["address"] == "127.0.0.1"


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What the service writes, to standard error otherwise."""
    handlers = logging.getLogger().handlers
    (ours,) = (each for each in handlers if isinstance(each.formatter, LineFormatter))
    assert isinstance(ours, logging.StreamHandler)
    before = ours.setStream(text := io.StringIO())
    yield text
    ours.setStream(before)


def test_flood_of_strangers_and_forged_hosts_writes_a_few_lines(
    shared: Api, heard: Heard, written: io.StringIO
) -> None:
    asked = 100
    for _ in range(asked):
        shared.ask("/api/symbols", key="x")
    assert 0 < len(heard.fields()) < asked / 5
    for _ in range(asked):
        httpx.get(f"{shared.base_url}/accounts/login/", headers={"Host": "evil.example"}, timeout=PATIENCE_S)
    assert {line["status"] for line in heard.fields()} == {400, 401, 429}
    assert 0 < len(written.getvalue().splitlines()) < asked / 5


LONG_PATH = f"/accounts/confirm-email/{'x' * 4_000}/"
FIELDS = {str(number): "1" for number in range(1_001)}


@pytest.mark.served
@pytest.mark.parametrize(
    ("path", "form", "sent", "reason"),
    [
        ("/settings/keys", {}, {}, "csrf: CSRF cookie not set."),
        (LONG_PATH, {}, {}, "csrf: CSRF cookie not set."),
        ("/settings/keys", {}, {"Origin": "https://evil.example/" + "x" * 4_000}, "csrf: Origin checking"),
        ("/accounts/login/", FIELDS, {"Cookie": f"csrftoken={'a' * 32}"}, "TooManyFieldsSent: The number of"),
    ],
)
def test_flood_of_forged_forms_writes_a_few_short_lines_that_say_why(
    shared: Api,
    heard: Heard,
    written: io.StringIO,
    path: str,
    form: dict[str, str],
    sent: dict[str, str],
    reason: str,
) -> None:
    asked = 100
    with httpx.Client(base_url=shared.base_url, timeout=PATIENCE_S) as stranger:
        statuses = {stranger.post(path, data=form, headers=sent).status_code for _ in range(asked)}
    assert statuses < {400, 403, 404}
    line = heard.fields()[0]
    assert line["reason"].startswith(reason)
    assert line["levelname"] == "INFO"
    lines = written.getvalue().splitlines()
    assert 0 < len(lines) < asked / 5
    assert max(map(len, lines)) < 1_000
