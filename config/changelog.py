"""CHANGELOG.md as a page. Pure: it knows the few signs that the file is written with."""

from __future__ import annotations

import re
from typing import NamedTuple

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

MARKS = ((r"`([^`]+)`", r"<code>\1</code>"), (r"\*([^*]+)\*", r"<em>\1</em>"))


class Release(NamedTuple):
    title: str
    items: list[SafeString]


class Changes(NamedTuple):
    about: str
    releases: list[Release]


def read(text: str) -> Changes:
    about, *releases = re.split(r"^## ", text, flags=re.MULTILINE)
    return Changes(" ".join(about.split("\n", 1)[1].split()), [read_release(each) for each in releases])


def read_release(text: str) -> Release:
    title, rest = text.split("\n", 1)
    items = re.split(r"^- ", rest, flags=re.MULTILINE)[1:]
    return Release(title.strip(), [marked(" ".join(item.split())) for item in items])


def marked(text: str) -> SafeString:
    html = str(escape(text))
    for sign, element in MARKS:
        html = re.sub(sign, element, html)
    return mark_safe(html)  # noqa: S308 - escaped above
