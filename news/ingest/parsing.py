"""Bytes of a feed, whatever they are, to entries of plain text. Run in a process apart (child.py)."""

from __future__ import annotations

import io
import math
import re
from typing import Any

import feedparser
import msgspec

from .addresses import digest, read_story_address
from .cleaning import LONGEST_SUMMARY, LONGEST_TITLE, clean
from .dating import read_time

MAX_ENTRIES = 200
LONGEST_GUID = 2_000
# An entity of one's own is a way to say a word a billion times; those of RSS 1.0 name a file (`ENTITY %`).
OWN_ENTITY = re.compile(rb"<!ENTITY\s+(?!%)", re.IGNORECASE)


class Entry(msgspec.Struct, frozen=True):
    guid_key: str
    title: str
    summary: str
    address: str
    published_ms: int | None


class Feed(msgspec.Struct, frozen=True):
    entries: list[Entry]
    """The newest ones, the newest first; those without a date count as new."""
    left_out: int = 0
    untitled: int = 0


class NoFeed(Exception):
    """The bytes are no feed; the sentence says what they seem to be."""


def read_feed(body: bytes, content_type: str, address: str) -> Feed:
    # Without the zeros UTF-16 and UTF-32 read as ASCII does.
    if OWN_ENTITY.search(body.replace(b"\0", b"")):
        raise NoFeed("it declares entities of its own, which no feed needs")
    # A stream: bytes alone feedparser would first try as the name of a file.
    read: Any = feedparser.parse(
        io.BytesIO(body),
        response_headers={"content-type": content_type} if content_type else {},
        resolve_relative_uris=False,
        sanitize_html=False,
    )
    if not read.entries and not read.get("version"):
        raise NoFeed(seems(body))
    newest = sorted(read.entries, key=_age)[:MAX_ENTRIES]
    entries = [_entry(found, address) for found in newest]
    titled = [entry for entry in entries if entry.title]
    return Feed(titled, len(read.entries) - len(newest), len(entries) - len(titled))


def seems(body: bytes) -> str:
    beginning = body[:2000].lstrip().lower()
    if not beginning:
        return "the answer is empty"
    if beginning.startswith((b"<!doctype html", b"<html")) or b"<html" in beginning:
        return "the answer is a web page, not a feed"
    return "the answer is neither RSS nor Atom"


def _entry(found: Any, feed_address: str) -> Entry:
    title = clean(_text(found, "title"), LONGEST_TITLE)
    address = read_story_address(_text(found, "link"), feed_address)
    guid = _text(found, "id") or address or title
    return Entry(
        guid_key=digest(guid[:LONGEST_GUID]),
        title=title,
        summary=clean(_text(found, "summary"), LONGEST_SUMMARY),
        address=address,
        published_ms=_published_ms(found),
    )


def _text(found: Any, name: str) -> str:
    text = dict.get(found, name)
    return text if isinstance(text, str) else ""


def _published_ms(found: Any) -> int | None:
    # Past feedparser's own lookup, which takes one name for the other and warns of it.
    return read_time(dict.get(found, "published_parsed") or dict.get(found, "updated_parsed"))


def _age(found: Any) -> float:
    published_ms = _published_ms(found)
    return -math.inf if published_ms is None else -published_ms
