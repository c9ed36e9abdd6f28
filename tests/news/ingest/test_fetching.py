"""Fetching from servers that do what they like."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable
from itertools import groupby

import httpx2
import pytest
import pytest_asyncio

from core.background import cancel_and_wait
from core.http import read_raw
from news.ingest.fetching import Fetcher
from news.ingest.parsing import FetchedFeed, NoFeed

from .feed_server import FeedServer, drip, flood, item, redirect, reply, rss

FEED = rss(item("Gold steadies"))
GZIP_WITH_A_NAME = b"\x1f\x8b\x08\x08" + bytes(6)
NO_PASSWORD = "a name or password in the address is never sent: leave it out"


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FeedServer]:
    async with FeedServer() as running:
        yield running


async def fetch(server: FeedServer, path: str = "/feed") -> FetchedFeed:
    found = await Fetcher(allow_loopback=True).fetch(f"{server.url}{path}")
    assert found is not None
    return found


async def refused(fetching: Awaitable[object]) -> str:
    with pytest.raises(NoFeed) as caught:
        await fetching
    return str(caught.value)


async def test_a_feed_comes_with_what_tells_its_next_version(server: FeedServer) -> None:
    server.paths["/feed"] = reply(FEED, ETag='W/"7"', Last_Modified="Wed, 18 Nov 2026 12:00:00 GMT")

    found = await fetch(server)

    assert (found.body, found.content_type, found.address) == (
        FEED,
        "application/rss+xml",
        f"{server.url}/feed",
    )
    assert (found.etag, found.modified) == ('W/"7"', "Wed, 18 Nov 2026 12:00:00 GMT")


async def test_what_it_said_is_given_back_as_it_came(server: FeedServer) -> None:
    server.paths["/feed"] = reply(b"", "304 Not Modified")

    assert await Fetcher(allow_loopback=True).fetch(f"{server.url}/feed", 'W/"7"', "yesterday") is None
    assert 'if-none-match: W/"7"\r\n' in server.asked[0].replace("If-None-Match", "if-none-match")
    assert "if-modified-since: yesterday\r\n" in server.asked[0].replace(
        "If-Modified-Since", "if-modified-since"
    )


async def test_the_first_time_nothing_is_asked_for_in_particular(server: FeedServer) -> None:
    server.paths["/feed"] = reply(FEED)
    await fetch(server)
    assert "if-" not in server.asked[0].lower()


async def test_the_host_is_named_as_it_was_asked_for(server: FeedServer) -> None:
    server.paths["/feed"] = reply(FEED)
    port = server.url.rpartition(":")[2]
    await Fetcher(allow_loopback=True).fetch(f"http://localhost:{port}/feed")
    assert f"Host: localhost:{port}\r\n" in server.asked[0]


@pytest.mark.parametrize("name", ["gzip", "x-gzip", "GZip", "identity, gzip"])
async def test_a_packed_feed_stays_packed_here(server: FeedServer, name: str) -> None:
    packed = gzip.compress(FEED)
    server.paths["/feed"] = reply(packed, Content_Encoding=name)
    found = await fetch(server)
    assert (found.body, found.is_packed) == (packed, True)


@pytest.mark.parametrize("names", ["gzip, gzip", "gzip, gzip, gzip", "deflate", "br"])
async def test_another_packing_is_refused_unread(server: FeedServer, names: str) -> None:
    # A name of a file that has no end: no byte ever comes out.
    body = GZIP_WITH_A_NAME + b"a" * 1_000_000
    for _ in names.split(", ")[1:]:
        body = gzip.compress(body)
    server.paths["/feed"] = reply(body, Content_Encoding=names)
    assert await refused(fetch(server)) == f"the answer is packed in a way nobody asked for ({names})"


@pytest.mark.parametrize("named", ["UTF-8", "none", "identity"])
async def test_what_is_no_coding_is_passed_over(server: FeedServer, named: str) -> None:
    server.paths["/feed"] = reply(FEED, Content_Encoding=named)
    found = await fetch(server)
    assert (found.body, found.is_packed) == (FEED, False)


async def test_others_have_the_loop_between_two_chunks_that_came_together() -> None:
    order = list[str]()

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(3):
            order.append("chunk")
            yield b" "

    async def other() -> None:
        while True:
            order.append("other")
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    assert await read_raw(httpx2.Response(200, content=chunks()), 10) == b"   "
    await cancel_and_wait(beside)
    assert [name for name, _ in groupby(order)][:6] == ["chunk", "other"] * 3


async def test_fifty_megabytes_are_not_read_to_their_end(server: FeedServer) -> None:
    server.paths["/feed"] = flood(50_000_000)
    assert await refused(fetch(server)) == "the answer has more than 2,000,000 bytes"


async def test_an_endless_drip_ends_in_time(server: FeedServer) -> None:
    server.paths["/feed"] = drip
    fetching = Fetcher(allow_loopback=True, timeout_s=0.3).fetch(f"{server.url}/feed")
    assert await refused(fetching) == "no whole answer within 0.3 s"


async def test_a_redirect_is_followed(server: FeedServer) -> None:
    server.paths |= {"/feed": redirect("/moved", "301 Moved Permanently"), "/moved": reply(FEED)}
    found = await fetch(server)
    assert (found.body, found.address) == (FEED, f"{server.url}/moved")


async def test_a_loop_of_redirects_ends(server: FeedServer) -> None:
    server.paths |= {"/feed": redirect("/other"), "/other": redirect("/feed")}
    assert await refused(fetch(server)) == "it redirects more than 5 times"
    assert len(server.asked) == 6


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("http://10.0.0.1/feed", "10.0.0.1 leads to an address that is not public"),
        ("http://169.254.169.254/latest/meta-data", "169.254.169.254 leads to an address that is not public"),
        ("http://[fe80::1]/", "fe80::1 leads to an address that is not public"),
        ("http://[::ffff:10.0.0.1]/", "::ffff:10.0.0.1 leads to an address that is not public"),
        ("http://0x0a000001/", "0x0a000001 leads to an address that is not public"),
        ("file:///etc/passwd", "a feed's address starts with https:// or http://"),
        ("ftp://example.com/feed", "a feed's address starts with https:// or http://"),
        (
            "http://user:secret@example.com/",
            NO_PASSWORD,
        ),
    ],
)
async def test_a_redirect_to_where_nobody_may_look_is_refused(
    server: FeedServer, target: str, reason: str
) -> None:
    server.paths["/feed"] = redirect(target)
    assert await refused(fetch(server)) == reason


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "0x7f.1", "2130706433", "[::1]", "0"])
async def test_without_the_tests_own_permission_loopback_is_refused(server: FeedServer, host: str) -> None:
    port = server.url.rpartition(":")[2]
    # The port is one that may be asked, so that it is the address which is refused.
    reason = await refused(Fetcher().fetch(f"http://{host}:8080/feed"))
    assert reason.endswith("leads to an address that is not public")
    assert (
        await refused(Fetcher().fetch(f"http://{host}:{port}/"))
        == f"port {port} is none of 80, 443, 8080, 8443"
    )
    assert server.asked == []


async def test_a_name_that_leads_nowhere_is_said(server: FeedServer) -> None:
    assert await refused(Fetcher().fetch("https://feed.invalid/")) == "feed.invalid cannot be found"


@pytest.mark.parametrize("status", ["404 Not Found", "500 Oops", "204 No Content", "301 No Location"])
async def test_another_answer_is_told_by_its_number(server: FeedServer, status: str) -> None:
    server.paths["/feed"] = reply(b"", status)
    assert await refused(fetch(server)) == f"the answer was {status[:3]}"


@pytest.mark.parametrize(
    ("header", "seconds"), [("120", 120), ("soon", 0), ("-5", 0), ("9" * 30, 0), ("٣", 0)]
)
async def test_a_server_may_ask_for_time(server: FeedServer, header: str, seconds: int) -> None:
    server.paths["/feed"] = reply(b"", "429 Slow Down").replace(
        b"\r\n\r\n", f"\r\nRetry-After: {header}\r\n\r\n".encode()
    )
    with pytest.raises(NoFeed) as caught:
        await fetch(server)
    assert caught.value.retry_after_s == seconds


@pytest.mark.parametrize(
    "answer", [b"", b"no HTTP\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf"]
)
async def test_a_broken_answer_is_a_failed_connection(server: FeedServer, answer: bytes) -> None:
    server.paths["/feed"] = answer
    assert (await refused(fetch(server))).startswith("the connection failed (")


async def test_a_validator_too_long_to_keep_is_not_kept(server: FeedServer) -> None:
    server.paths["/feed"] = reply(FEED, ETag='"' + "x" * 400 + '"')
    assert (await fetch(server)).etag == ""


async def test_a_closed_port_is_a_failed_connection() -> None:
    async with FeedServer() as gone:
        url = gone.url
    assert await refused(Fetcher(allow_loopback=True).fetch(url)) == "the connection failed (ConnectError)"


async def test_no_cookie_follows(server: FeedServer) -> None:
    server.paths |= {
        "/feed": reply(b"", "302 Found", Location="/moved", Set_Cookie="a=b"),
        "/moved": reply(FEED),
    }
    await fetch(server)
    assert "cookie" not in server.asked[1].lower()


async def test_several_at_once_do_not_mind_each_other(server: FeedServer) -> None:
    server.paths |= {"/slow": drip, "/feed": reply(FEED)}
    slow = asyncio.create_task(fetch(server, "/slow"))
    assert (await fetch(server)).body == FEED
    await cancel_and_wait(slow)
