"""Turns the bytes of a feed, whatever they are, into entries of plain text. Runs in a separate process."""

import calendar
import html
import io
import re
import unicodedata
import zlib
from datetime import UTC, datetime
from typing import Any

import feedparser
import msgspec
import nh3

from news.addresses import digest, read_story_address

MAX_ENTRIES = 200
NEW = datetime.max.replace(tzinfo=UTC)
LONGEST_GUID = 2_000
# A custom entity can expand to a billion words; the ones of RSS 1.0 only name a file (`ENTITY %`).
OWN_ENTITY = re.compile(rb"<!ENTITY\s+(?!%)", re.IGNORECASE)
LONGEST_TITLE = 300
LONGEST_SUMMARY = 2_000
# Cleaning takes time in proportion to the length, and anything this far back is cut off anyway.
LONGEST_READ = 20_000
# Joiners shape letters and emoji; every other format character hides or reverses text.
JOINERS = "\u200c\u200d"
DROPPED = ("Cf", "Cs", "Co", "Cn")
SPACES = ("Cc", "Zl", "Zp", "Zs")
# No script stacks more marks on a letter; more of them are meant to cover the lines around it.
MOST_MARKS = 4
MAX_BYTES = 2_000_000
# feedparser takes up to 30 µs for each, open or closed, however deep. Honest feeds have a fifth of them.
MOST_TAGS = 100_000
GZIP, MAGIC = zlib.MAX_WBITS | 16, b"\x1f\x8b"


class FetchedFeed(msgspec.Struct, frozen=True):
    body: bytes
    """As received."""
    content_type: str
    address: str
    """The address that it finally came from, after redirects."""
    is_packed: bool = False
    etag: str = ""
    modified: str = ""


class FeedEntry(msgspec.Struct, frozen=True):
    guid_key: str
    title: str
    summary: str
    address: str
    published_at: datetime | None


class ParsedFeed(msgspec.Struct, frozen=True):
    entries: list[FeedEntry]
    """The newest, in descending order; entries without a date count as new."""
    left_out: int = 0
    untitled: int = 0


class NoFeed(Exception):
    """There is no feed; the message says why. The server may ask us to stay away for `retry_after_s`."""

    def __init__(self, reason: str, retry_after_s: int = 0) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


def read_feed(body: bytes, content_type: str, address: str) -> ParsedFeed:
    if body.count(b"<") > MOST_TAGS:
        raise NoFeed(f"it has more than {MOST_TAGS:,} tags")
    # Without the zero bytes, UTF-16 and UTF-32 look like ASCII.
    if OWN_ENTITY.search(body.replace(b"\0", b"")):
        raise NoFeed("it declares entities of its own, which no feed needs")
    # It is passed as a stream, because feedparser would first try plain bytes as a file name.
    read: Any = feedparser.parse(
        io.BytesIO(body),
        response_headers={"content-type": content_type} if content_type else {},
        resolve_relative_uris=False,
        sanitize_html=False,
    )
    if not read.entries and not read.get("version"):
        raise NoFeed(seems(body))
    newest = sorted(read.entries, key=lambda found: _published_at(found) or NEW, reverse=True)[:MAX_ENTRIES]
    entries = [_entry(found, address) for found in newest]
    titled = [entry for entry in entries if entry.title]
    return ParsedFeed(titled, len(read.entries) - len(newest), len(entries) - len(titled))


def seems(body: bytes) -> str:
    beginning = body[:2000].lstrip().lower()
    if not beginning:
        return "the answer is empty"
    if beginning.startswith((b"<!doctype html", b"<html")) or b"<html" in beginning:
        return "the answer is a web page, not a feed"
    return "the answer is neither RSS nor Atom"


def _entry(found: Any, feed_address: str) -> FeedEntry:
    title, link, guid = clean(_text(found, "title"), LONGEST_TITLE), _text(found, "link"), _text(found, "id")
    summary, published_at = clean(_text(found, "summary"), LONGEST_SUMMARY), _published_at(found)
    address = read_story_address(link, feed_address)
    guid_key = digest((guid or address or title)[:LONGEST_GUID])
    return FeedEntry(guid_key, title, summary, address, published_at)


def _text(found: Any, name: str) -> str:
    text = dict.get(found, name)
    return text if isinstance(text, str) else ""


def _published_at(found: Any) -> datetime | None:
    # Bypasses feedparser's own lookup, which maps one name to the other and warns about it.
    parsed = dict.get(found, "published_parsed") or dict.get(found, "updated_parsed")
    return None if parsed is None else read_time(parsed)


def read_time(parsed: tuple[int, ...]) -> datetime | None:
    """The time that feedparser parsed; None for an impossible one."""
    try:
        return datetime.fromtimestamp(calendar.timegm(parsed), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def clean(text: str, longest: int) -> str:
    """One line of text, without tags and with entities unescaped once."""
    # A lone surrogate is not a character and cannot be encoded.
    whole = text[:LONGEST_READ].encode(errors="ignore").decode()
    without_tags = nh3.clean(whole, tags=set())
    plain = "".join(visible(unicodedata.normalize("NFC", html.unescape(without_tags))))
    return shorten(" ".join(plain.split()), longest)


def visible(text: str) -> list[str]:
    kept: list[str] = []
    marks = 0
    for letter in text:
        kind = unicodedata.category(letter)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        if kind in SPACES:
            kept.append(" ")
        elif (kind not in DROPPED or letter in JOINERS) and marks <= MOST_MARKS:
            kept.append(letter)
    return kept


def shorten(text: str, longest: int) -> str:
    """Cut between words, unless that would lose half of the text."""
    if len(text) <= longest:
        return text
    cut = text[: longest - 1]
    at_word = cut.rpartition(" ")[0]
    return (at_word if len(at_word) > longest // 2 else cut).rstrip(" ,;:–-") + "…"


def unpack(body: bytes) -> bytes:
    """Unpacks each gzip member; like browsers, it ignores what follows the last one."""
    unpacked = b""
    try:
        while True:
            member = zlib.decompressobj(GZIP)
            unpacked += member.decompress(body, MAX_BYTES + 1 - len(unpacked))
            if len(unpacked) > MAX_BYTES:
                raise NoFeed(f"the feed has more than {MAX_BYTES:,} bytes")
            if not member.eof:
                raise NoFeed("the packed answer breaks off")
            body = member.unused_data
            if not body.startswith(MAGIC):
                return unpacked
    except zlib.error:
        raise NoFeed("the answer says that it is gzip, and is not") from None
