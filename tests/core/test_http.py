"""Requests end in time and in size, and whatever goes wrong is one sentence."""

from __future__ import annotations

import httpx2
import pytest

from core.http import BodyRefused, HttpFailed, bounded, open_client, quoted, request
from tests.news.ingest.feed_server import FeedServer, drip, flood, reply
from tests.patience import PATIENCE_S

MOST = 100_000


async def ask(path: str, seconds: float = PATIENCE_S) -> tuple[httpx2.Response, bytes]:
    async with FeedServer() as server, open_client() as client:
        server.paths |= {
            "/plain": reply(b"hello"),
            "/gone": reply(b"no", "410 Gone"),
            "/flood": flood(2 * MOST),
            "/packed": reply(b"...", Content_Encoding="gzip"),
            "/drip": drip,
        }
        async with bounded(seconds):
            return await request(client, "GET", server.url + path, most=MOST)


async def test_body_comes_as_it_was_sent() -> None:
    response, body = await ask("/plain")

    assert (response.status_code, body) == (200, b"hello")


async def test_refusal_has_its_body() -> None:
    response, body = await ask("/gone")

    assert (response.status_code, body) == (410, b"no")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/flood", "the answer has more than 100,000 bytes"),
        ("/packed", "the answer is packed in a way nobody asked for (gzip)"),
    ],
)
async def test_body_beyond_what_was_asked_for_is_refused(path: str, why: str) -> None:
    with pytest.raises(BodyRefused) as refused:
        await ask(path)

    assert str(refused.value) == why


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


async def test_drops_that_never_end_end_in_time() -> None:
    with pytest.raises(HttpFailed) as failed:
        await ask("/drip", seconds=0.2)

    assert str(failed.value) == "no whole answer within 0.2 s"


async def test_line_that_breaks_is_told_by_its_kind() -> None:
    with pytest.raises(HttpFailed) as failed:
        async with open_client() as client, bounded(PATIENCE_S):
            await request(client, "GET", "http://127.0.0.1:1/", most=MOST)

    assert str(failed.value) == "the connection failed (ConnectError)"


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
