"""Titles and summaries of strangers, and the feeds that they come in."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from news.ingest.parsing import LONGEST_TITLE, MAX_ENTRIES, FeedEntry, NoFeed, clean, read_feed, shorten

from .feed_server import item, rss


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Gold steadies", "Gold steadies"),
        ("  Gold\n\tsteadies ", "Gold steadies"),
        ("<b>Gold</b> <i>steadies</i>", "Gold steadies"),
        ("Gold<script>alert(1)</script> steadies", "Gold steadies"),
        ("Gold<style>*{}</style> steadies", "Gold steadies"),
        ('<img src=x onerror="alert(1)">Gold', "Gold"),
        ("Gold <!-- a comment --> steadies", "Gold steadies"),
        ("AT&amp;T rises", "AT&T rises"),
        ("AT&T rises", "AT&T rises"),
        ("Tom &amp;amp; Jerry", "Tom &amp; Jerry"),
        ("&lt;b&gt; is no tag here", "<b> is no tag here"),
        ("Rates < 5 % and > 3 %", "Rates < 5 % and > 3 %"),
        ("Euro at &euro;1.08 &#8211; caf&eacute;", "Euro at €1.08 – café"),
        ("Gold\x00 steadies\x07", "Gold steadies"),
        ("Gold \u202esedaets\u202c", "Gold sedaets"),
        ("Gold\u200b\ufeff\u2066 steadies\u00ad", "Gold steadies"),
        ("Gold\u2028steadies", "Gold steadies"),
        ("Cafe\u0301", "Café"),
        ("Go\ud800ld", "Gold"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("G" + "\u0301" * 50 + "old", "Ǵ" + "\u0301" * 4 + "old"),
        ("", ""),
        ("<p></p>", ""),
    ],
)
def test_only_text_is_left(text: str, plain: str) -> None:
    assert clean(text, LONGEST_TITLE) == plain


def test_what_does_not_fit_is_cut_between_words() -> None:
    assert shorten("Gold steadies as yields ease", 16) == "Gold steadies…"
    assert shorten("Gold steadies", 13) == "Gold steadies"
    assert shorten("x" * 50, 10) == "x" * 9 + "…"


@given(st.text(max_size=500))
def test_whatever_comes_becomes_one_short_line_without_hidden_letters(text: str) -> None:
    plain = clean(text, LONGEST_TITLE)
    assert len(plain) <= LONGEST_TITLE
    assert plain == " ".join(plain.split())
    assert not any(letter in plain for letter in "\x00\u202e\u2066\u200b\ufeff\n\r\t")


@pytest.mark.parametrize("text", ["<", "&", "<a ", "&lt;", "a\u0301", "<b>"])
def test_what_is_far_too_long_is_not_even_read(text: str) -> None:
    assert len(clean(text * 1_000_000, LONGEST_TITLE)) <= LONGEST_TITLE


ADDRESS = "https://wire.example/rss/all.xml"
DATE = "Wed, 18 Nov 2026 12:00:00 GMT"
NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
ATOM = """<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>A</title><entry>
<id>tag:wire.example,2026:7</id><title type="html">Gold &lt;b&gt;steadies&lt;/b&gt;</title>
<link href="/gold"/><updated>2026-11-18T13:00:00+01:00</updated><summary>It does.</summary></entry></feed>"""
RDF = """<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [<!ENTITY % HTMLlat1 PUBLIC "-//W3C//ENTITIES Latin 1 for XHTML//EN" "http://10.0.0.1/x.ent">]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
 xmlns:dc="http://purl.org/dc/elements/1.1/"><item rdf:about="https://wire.example/gold">
<title>Gold steadies</title><link>https://wire.example/gold</link><dc:date>2026-11-18T12:00:00Z</dc:date>
<description>It does.</description></item></rdf:RDF>"""


def read(body: bytes, content_type: str = "application/xml") -> list[FeedEntry]:
    return read_feed(body, content_type, ADDRESS).entries


def refusal(body: bytes) -> str:
    with pytest.raises(NoFeed) as caught:
        read_feed(body, "application/xml", ADDRESS)
    return str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        rss(item("Gold steadies", "7", "/gold", DATE, "It does.")),
        ATOM.encode(),
        RDF.encode(),
        ATOM.replace("?>", " encoding='utf-16'?>", 1).encode("utf-16"),
    ],
    ids=["RSS", "Atom", "RDF", "UTF-16"],
)
def test_every_kind_of_feed_reads_alike(body: bytes) -> None:
    (entry,) = read(body)
    assert (entry.title, entry.summary, entry.published_at) == ("Gold steadies", "It does.", NOON)
    assert entry.address == "https://wire.example/gold"


@pytest.mark.parametrize(
    ("one", "other", "are_one"),
    [
        (item("One", "7", "/a"), item("Two", "7", "/b"), True),
        (item("One", "", "/a"), item("Two", "", "/a"), True),
        (item("One"), item("Two"), False),
    ],
)
def test_entries_are_told_apart_by_guid_else_by_address_else_by_title(
    one: str, other: str, are_one: bool
) -> None:
    keys = [read(rss(each))[0].guid_key for each in (one, other)]
    assert (keys[0] == keys[1]) is are_one


def test_titles_are_plain_text_links_run_nothing_and_what_has_no_title_is_counted() -> None:
    hostile = "&lt;script&gt;alert(1)&lt;/script&gt;Gold &lt;b onclick=x&gt;up&lt;/b&gt; at AT&amp;amp;T"
    body = rss(item(hostile, link="javascript:alert(1)"), item("&lt;img&gt;"), "<item/>")
    feed = read_feed(body, "", ADDRESS)
    assert [(entry.title, entry.address) for entry in feed.entries] == [("Gold up at AT&T", "")]
    assert feed.untitled == 2
    assert read(rss()) == []


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("Café".encode("cp1252"), "application/xml; charset=windows-1252"),
        # They say one thing and are another, as feeds do.
        ("Café".encode("cp1252"), "application/xml; charset=utf-8"),
        ("Café".encode(), "text/html; charset=us-ascii"),
        ("Café".encode(), "application/xml; charset=no-such-thing"),
        ("Café".encode(), ""),
    ],
)
def test_a_wrong_encoding_is_seen_through(body: bytes, content_type: str) -> None:
    assert [entry.title for entry in read(rss(item("~")).replace(b"~", body), content_type)] == ["Café"]


@pytest.mark.parametrize(
    "body", [b"Go\x00ld", b"Go\xff\xfeld", b"Gold &nosuch; up", b"Gold <b up", b"Gold ]]> up"]
)
def test_broken_text_breaks_nothing(body: bytes) -> None:
    feed = read_feed(rss(item("~"), item("Silver")).replace(b"~", body), "application/xml", ADDRESS)
    assert "Silver" in str(feed.entries) or len(feed.entries) == 1
    assert "\x00" not in str(feed.entries)


@pytest.mark.parametrize(
    "date", ["", "nonsense", "Fri, 31 Dec 99999 00:00:00 GMT", "Sat, 01 Jan 0000 00:00:00 GMT"]
)
def test_a_date_that_is_none_is_none(date: str) -> None:
    assert [entry.published_at for entry in read(rss(item("Gold", date=date)))] == [None]


def test_only_the_newest_entries_are_taken() -> None:
    dates = [f"{day:02} Nov 2026 {hour:02}:00:00 GMT" for day in range(1, 19) for hour in range(24)]
    feed = read_feed(rss(*(item(f"Gold {date}", date=date) for date in dates)), "", ADDRESS)
    assert (len(feed.entries), feed.left_out) == (MAX_ENTRIES, len(dates) - MAX_ENTRIES)
    assert feed.entries[0].title == "Gold 18 Nov 2026 23:00:00 GMT"


def laughs(depth: int = 9) -> bytes:
    declared = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, depth + 1))
    return f'<!DOCTYPE x [<!ENTITY l0 "lol">{declared}]><rss><item><title>&l{depth};</title>'.encode()


@pytest.mark.parametrize(
    "body",
    [
        laughs(),
        laughs().replace(b"<!ENTITY", b"<!EnTiTy"),
        laughs().decode().encode("utf-16"),
        laughs().decode().encode("utf-32-be"),
        b'<!DOCTYPE x [<!ENTITY a "' + b"x" * 50_000 + b'">]><rss><channel><item><title>' + b"&a;" * 20_000,
        b'<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><rss><channel><item><title>&f;</title>',
    ],
    ids=["billion laughs", "in other letters", "UTF-16", "UTF-32", "one word 20,000 times", "a file"],
)
def test_entities_of_its_own_are_refused(body: bytes) -> None:
    assert refusal(body) == "it declares entities of its own, which no feed needs"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "the answer is empty"),
        (b"<!doctype html><html><body>Sign in</body></html>", "the answer is a web page, not a feed"),
        (b'{"items": []}', "the answer is neither RSS nor Atom"),
        (b"\x89PNG\r\n", "the answer is neither RSS nor Atom"),
    ],
)
def test_what_is_no_feed_is_named(body: bytes, reason: str) -> None:
    assert refusal(body) == reason


def test_the_name_of_a_file_is_not_opened(tmp_path: Path) -> None:
    secret = tmp_path / "feed.xml"
    secret.write_bytes(rss(item("Secret")))
    assert refusal(str(secret).encode()) == "the answer is neither RSS nor Atom"
