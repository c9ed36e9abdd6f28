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
from news.addresses import AddressRefused, read_feed_address, read_story_address, story_key
from news.ingest.parsing import FetchedFeed, NoFeed
from news.ingest.polling import Fetcher, is_public, read_address

from .feed_server import Answer, FeedServer, drip, flood, item, redirect, reply, rss

FEED = rss(item("Gold steadies"))
GZIP_WITH_A_NAME = b"\x1f\x8b\x08\x08" + bytes(6)


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
    assert (found.body, found.content_type) == (FEED, "application/rss+xml")
    assert found.address == f"{server.url}/feed"
    assert (found.etag, found.modified) == ('W/"7"', "Wed, 18 Nov 2026 12:00:00 GMT")
    # What is too long to keep is not kept.
    server.paths["/feed"] = reply(FEED, ETag='"' + "x" * 400 + '"')
    assert (await fetch(server)).etag == ""
    assert "if-" not in server.asked[1].lower()


async def test_what_it_said_is_given_back_as_it_came(server: FeedServer) -> None:
    server.paths["/feed"] = reply(b"", "304 Not Modified")
    address = server.url.replace("127.0.0.1", "localhost")
    assert await Fetcher(allow_loopback=True).fetch(f"{address}/feed", 'W/"7"', "yesterday") is None
    asked = server.asked[0].lower()
    assert 'if-none-match: w/"7"\r\n' in asked
    assert "if-modified-since: yesterday\r\n" in asked
    assert f"host: {address.removeprefix('http://')}\r\n" in asked


@pytest.mark.parametrize(
    ("name", "is_packed"),
    [
        *((name, True) for name in ("gzip", "x-gzip", "GZip", "identity, gzip")),
        *((name, False) for name in ("UTF-8", "none", "identity")),
    ],
)
async def test_a_packed_feed_stays_packed_here(server: FeedServer, name: str, is_packed: bool) -> None:
    body = gzip.compress(FEED) if is_packed else FEED
    server.paths["/feed"] = reply(body, Content_Encoding=name)
    found = await fetch(server)
    assert (found.body, found.is_packed) == (body, is_packed)


@pytest.mark.parametrize(
    "names", ["gzip, gzip", "gzip, gzip, gzip", "deflate", "br", ", ".join(["gzip"] * 12)]
)
async def test_another_packing_is_refused_unread(server: FeedServer, names: str) -> None:
    # A name of a file that has no end: no byte ever comes out.
    body = GZIP_WITH_A_NAME + b"a" * 1_000_000
    for _ in names.split(", ")[1:]:
        body = gzip.compress(body)
    server.paths["/feed"] = reply(body, Content_Encoding=names)
    assert (
        await refused(fetch(server)) == f"the answer is packed in a way that was not asked for ({names[:40]})"
    )


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


async def test_an_endless_drip_ends_in_time(server: FeedServer) -> None:
    server.paths["/feed"] = drip
    fetching = Fetcher(allow_loopback=True, timeout_s=0.3).fetch(f"{server.url}/feed")
    assert await refused(fetching) == "no whole answer within 0.3 s"


async def test_a_redirect_is_followed_without_a_cookie(server: FeedServer) -> None:
    moved = reply(b"", "301 Moved Permanently", Location="/moved", Set_Cookie="a=b")
    server.paths |= {"/feed": moved, "/moved": reply(FEED)}
    found = await fetch(server)
    assert (found.body, found.address) == (FEED, f"{server.url}/moved")
    assert "cookie" not in server.asked[1].lower()


NOT_PUBLIC, NOT_HTTP = (
    "leads to an address that is not public",
    "a feed's address starts with https:// or http://",
)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("http://10.0.0.1/feed", f"10.0.0.1 {NOT_PUBLIC}"),
        ("http://169.254.169.254/latest/meta-data", f"169.254.169.254 {NOT_PUBLIC}"),
        ("http://[fe80::1]/", f"fe80::1 {NOT_PUBLIC}"),
        ("http://[::ffff:10.0.0.1]/", f"::ffff:10.0.0.1 {NOT_PUBLIC}"),
        ("http://0x0a000001/", f"0x0a000001 {NOT_PUBLIC}"),
        ("file:///etc/passwd", NOT_HTTP),
        ("ftp://example.com/feed", NOT_HTTP),
        ("http://me:secret@a.example/", "a name or password in the address is never sent: leave it out"),
        ("/feed", "it redirects more than 5 times"),
    ],
)
async def test_a_redirect_to_where_nobody_may_look_is_refused(
    server: FeedServer, target: str, reason: str
) -> None:
    server.paths["/feed"] = redirect(target)
    assert await refused(fetch(server)) == reason
    assert len(server.asked) == (6 if target == "/feed" else 1)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "0x7f.1", "2130706433", "[::1]", "0"])
async def test_without_the_tests_own_permission_loopback_is_refused(server: FeedServer, host: str) -> None:
    port = server.url.rpartition(":")[2]
    # The port is one that may be asked, so that it is the address which is refused.
    assert (await refused(Fetcher().fetch(f"http://{host}:8080/feed"))).endswith(NOT_PUBLIC)
    reason = await refused(Fetcher().fetch(f"http://{host}:{port}/"))
    assert reason == f"port {port} is none of 80, 443, 8080, 8443"
    assert server.asked == []


async def test_a_name_that_leads_nowhere_is_said(server: FeedServer) -> None:
    assert await refused(Fetcher().fetch("https://feed.invalid/")) == "feed.invalid cannot be found"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        *((reply(b"", status), f"the answer was {status}") for status in ("404", "500", "204", "301")),
        *((answer, "the connection failed (") for answer in (b"", b"no HTTP\r\n\r\n")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf", "the connection failed ("),
        (flood(50_000_000), "the answer has more than 2,000,000 bytes"),
    ],
)
async def test_any_other_answer_is_told(server: FeedServer, answer: Answer, reason: str) -> None:
    server.paths["/feed"] = answer
    assert (await refused(fetch(server))).startswith(reason)


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


async def test_several_at_once_do_not_mind_each_other(server: FeedServer) -> None:
    server.paths |= {"/slow": drip, "/feed": reply(FEED)}
    slow = asyncio.create_task(fetch(server, "/slow"))
    assert (await fetch(server)).body == FEED
    await cancel_and_wait(slow)


# Addresses of feeds and stories.
@pytest.mark.parametrize(
    "address", ["https://a.example/f", "http://a.example:8080/f?x=1", "HTTPS://A.example:443/"]
)
def test_a_feed_is_asked_over_http(address: str) -> None:
    assert read_feed_address(address).host == "a.example"


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        *((address, NOT_HTTP) for address in ("ftp://a.example/f", "javascript:alert(1)", "a.example/f")),
        ("https:///f", NOT_HTTP),
        ("https://me:secret@a.example/", "a name or password in the address is never sent: leave it out"),
        *((f"https://a.example:{n}/", f"port {n} is none of 80, 443, 8080, 8443") for n in (22, 6379, 99999)),
        ("https://[::g]/", "the address cannot be read"),
        ("https://a.example/\x00", "the address cannot be read"),
        ("https://a.example/" + "x" * 500, "the address is longer than 500 characters"),
    ],
)
def test_any_other_address_is_refused_with_the_reason(address: str, reason: str) -> None:
    with pytest.raises(AddressRefused) as caught:
        read_feed_address(address)
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("link", "address"),
    [
        ("https://wire.example/gold?id=7", "https://wire.example/gold?id=7"),
        (" /gold ", "https://wire.example/gold"),
        ("//other.example/gold", "https://other.example/gold"),
        ("", ""),
        ("javascript:alert(1)", ""),
        ("data:text/html,x", ""),
        ("https://me:secret@wire.example/", ""),
        ("https://wire.example/a b", ""),
        ("https://wire.example/\u202egpj.exe", ""),
        ("https://[::g]/", ""),
        ("https://wire.example/" + "x" * 500, ""),
    ],
)
def test_a_storys_address_is_whole_or_nothing(link: str, address: str) -> None:
    assert read_story_address(link, "https://wire.example/rss/all.xml") == address


@pytest.mark.parametrize(
    "address",
    [
        "https://www.wire.example/gold?id=7&x=1",
        "http://WIRE.example/gold/?x=1&id=7",
        "https://wire.example/gold?utm_source=rss&id=7&x=1&utm_medium=feed",
        "https://wire.example/gold?fbclid=abc&id=7&x=1#comments",
        "https://wire.example:443/gold?ref=home&id=7&guccounter=1&x=1",
    ],
)
def test_how_a_reader_came_is_no_part_of_the_story(address: str) -> None:
    assert story_key(address) == story_key("https://wire.example/gold?id=7&x=1") != story_key("") == ""


@pytest.mark.parametrize(
    "address",
    ["https://wire.example/gold?id=8", "https://wire.example/Gold?id=7", "https://other.example/gold?id=7"],
)
def test_another_page_is_another_story(address: str) -> None:
    assert story_key(address) != story_key("https://wire.example/gold?id=7")


# Which addresses a feed may live at.
def allowed(text: str) -> bool:
    address = read_address(text)
    assert address is not None
    return is_public(address)


@pytest.mark.parametrize(
    "text", ["93.184.216.34", "8.8.8.8", "1.1.1.1", "2606:2800:220:1::1", "2a00:1450::1"]
)
def test_a_public_address_may_be_asked(text: str) -> None:
    assert allowed(text)


@pytest.mark.parametrize(
    "text",
    [
        *("127.0.0.1", "127.255.255.254", "0.0.0.1", "0.1.2.3", "10.0.0.1", "172.16.0.1", "192.168.1.1"),
        *("169.254.169.254", "100.64.0.1", "192.0.0.1", "192.0.2.1", "198.18.0.1", "203.0.113.9"),
        *("224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "192.88.99.1"),
        # Special purposes that are called globally reachable, and the host agent of Azure.
        *("192.0.0.9", "192.0.0.10", "192.31.196.1", "192.52.193.1", "192.175.48.1", "168.63.129.16"),
        *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "fec0::1"),
        # IPv4 in disguise: mapped, compatible, NAT64 (also its local prefix), 6to4, Teredo.
        *("::ffff:10.0.0.1", "::ffff:8.8.8.8", "::7f00:1", "64:ff9b::7f00:1", "64:ff9b:1::1"),
        *("2002:7f00:1::", "2001:0:4136:e378::1", "2001:db8::1", "3fff::1", "100::1", "5f00::1"),
        *("2001:1::1", "2001:3::1", "2001:4:112::1", "2001:20::1", "2620:4f:8000::1", "64:ff9b::a3f:8110"),
    ],
)
def test_no_other_address_is(text: str) -> None:
    assert not allowed(text)


@pytest.mark.parametrize("text", ["", "localhost", "1.2.3", "::g", "127.0.0.1 "])
def test_what_is_no_address_is_none(text: str) -> None:
    assert read_address(text) is None
