"""Reading in a process apart: what hangs, swells or breaks there stays there."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable

import msgspec
import pytest

from news.ingest.parsing import FetchedFeed, NoFeed
from news.ingest.parsing_process import ROOT, read_apart, understand
from tests.patience import PATIENCE_S

from .feed_server import item, rss

pytestmark = pytest.mark.served

ADDRESS = "https://wire.example/rss/all.xml"


async def test_what_it_refuses_it_refuses_in_words() -> None:
    with pytest.raises(NoFeed, match="the answer is empty"):
        await read_apart(FetchedFeed(b"", "", ADDRESS))


@pytest.mark.parametrize(
    ("pack", "is_packed"),
    [
        (lambda body: body, False),
        # In two members, as some servers pack.
        (lambda body: gzip.compress(body[:9]) + gzip.compress(body[9:]), True),
        (lambda body: gzip.compress(body) + b"\n<!-- made in 3 ms -->", True),
    ],
    ids=["plain", "packed in two members", "with something behind it"],
)
async def test_a_feed_is_read_and_what_is_packed_is_unpacked_there(
    pack: Callable[[bytes], bytes], is_packed: bool
) -> None:
    body = pack(rss(item("Gold steadies")))
    feed = await read_apart(FetchedFeed(body, "application/xml", ADDRESS, is_packed=is_packed))
    assert [entry.title for entry in feed.entries] == ["Gold steadies"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (gzip.compress(b" " * 50_000_000), "the feed has more than 2,000,000 bytes"),
        (gzip.compress(rss(item("Gold")))[:-20], "the packed answer breaks off"),
        (b"\x1f\x8b\x08\x08" + bytes(6) + b"a" * 1_990_000, "the packed answer breaks off"),
        (rss(item("Gold")), "the answer says that it is gzip, and is not"),
        (gzip.compress(rss())[:10] + b"\xff" * 100, "the answer says that it is gzip, and is not"),
    ],
    ids=["a bomb", "half of it", "a name without end", "no gzip", "no deflate"],
)
async def test_what_cannot_be_unpacked_is_told(body: bytes, reason: str) -> None:
    with pytest.raises(NoFeed, match=reason):
        await read_apart(FetchedFeed(body, "", ADDRESS, is_packed=True))


@pytest.mark.parametrize("answer", [b"", b"\xff", b"Traceback", msgspec.msgpack.encode({"feed": 7})])
def test_a_child_that_died_leaves_a_sentence(answer: bytes) -> None:
    with pytest.raises(NoFeed, match="reading it took too much time or memory"):
        understand(answer)


@pytest.mark.parametrize(
    "program", ["while True: pass", "x = bytearray(2_000_000_000)"], ids=["time", "memory"]
)
def test_its_limits_hold(program: str) -> None:
    limited = (
        "import resource; from news.ingest.parsing_process import limit; "
        f"limit(resource.RLIMIT_CPU, 1); limit(resource.RLIMIT_AS, 500_000_000)\n{program}\nprint('done')"
    )
    command = [sys.executable, "-c", limited]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode != 0, done.stdout) == (True, b"")
