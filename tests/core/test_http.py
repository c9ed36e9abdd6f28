"""Requests end in time and in size, and whatever goes wrong is one sentence."""

from __future__ import annotations

import pytest

from core.http import bounded, open_client, quoted, request
from tests.news.ingest.feed_server import FeedServer, reply
from tests.patience import PATIENCE_S

MOST = 100_000


@pytest.mark.parametrize(("status", "body"), [(200, b"hello"), (410, b"no")])
async def test_answers_and_refusals_come_with_their_bodies(status: int, body: bytes) -> None:
    async with FeedServer() as server, open_client() as client, bounded(PATIENCE_S):
        server.paths["/"] = reply(body, f"{status} So")
        response, found = await request(client, "GET", f"{server.url}/", most=MOST)
    assert (response.status_code, found) == (status, body)


@pytest.mark.parametrize("trust_env", [True, False])
async def test_proxy_of_the_environment_is_asked_unless_it_is_not_trusted(
    monkeypatch: pytest.MonkeyPatch, *, trust_env: bool
) -> None:
    for name in ("NO_PROXY", "no_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with FeedServer() as here, FeedServer() as proxy:
        here.paths["/"] = reply(b"here")
        proxy.paths[f"{here.url}/"] = reply(b"by the proxy")
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        async with open_client(trust_env=trust_env) as client, bounded(PATIENCE_S):
            _, body = await request(client, "GET", f"{here.url}/", most=MOST)
    assert body == (b"by the proxy" if trust_env else b"here")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Bad  key\nk-1 ", ": Bad key ***"),
        ("No.", ": No"),
        ("x" * 300, ": " + "x" * 200),
        (None, ""),
        ({"a": 1}, ""),
    ],
)
def test_error_of_another_server_is_quoted_on_one_line_without_the_key(text: object, shown: str) -> None:
    assert quoted(text, "k-1") == shown
