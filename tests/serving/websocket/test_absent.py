"""A stream that there is not, and a stream that is asked for like a page: what the answer says."""

from __future__ import annotations

import json

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.client import Server
from tests.patience import PATIENCE_S, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/ws//",
        "/ws/markets",
        "/ws/Market",
        "/ws/market//",
        "/ws/market/EURUSD",
        "/market",
        "/api/session",
    ],
)
def test_handshake_at_another_path_is_told_that_no_stream_is_there(
    server: Server, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    url = server.url.replace("http", "ws", 1) + path
    with pytest.raises(InvalidStatus) as refused:
        connect(url, open_timeout=PATIENCE_S)
    answer = refused.value.response
    error = json.loads(answer.body)["error"]
    assert (answer.status_code, error["code"], error["status"]) == (404, "not_found", 404)
    assert error["message"] == "There is no stream at this path. /docs/streams lists all of them."
    assert answer.headers["X-Request-Id"] == error["request_id"]
    assert answer.headers["X-API-Version"] == "1"
    wait_until(lambda: not server.state.tasks)
    assert "without completing handshake" not in caplog.text


def test_request_for_a_stream_is_told_to_use_a_websocket(server: Server) -> None:
    for path in ("/ws/market", "/ws/market/", "/ws/news", "/ws/ingest"):
        for method in ("GET", "POST"):
            answer = httpx.request(method, server.url + path, timeout=PATIENCE_S)
            error = answer.json()["error"]
            assert (answer.status_code, error["code"]) == (426, "invalid_upgrade")
            assert "connect to it with a WebSocket client" in error["message"]
            assert (answer.headers["Upgrade"], answer.headers["X-API-Version"]) == ("websocket", "1")
    head = httpx.head(f"{server.url}/ws/market", timeout=PATIENCE_S)
    assert (head.status_code, head.content) == (426, b"")
