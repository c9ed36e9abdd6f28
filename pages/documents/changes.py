"""CHANGELOG.md, release by release."""

import re
from functools import cache
from typing import NamedTuple

from django.conf import settings
from django.utils.safestring import SafeString

from .rendering import with_marks


class Release(NamedTuple):
    title: str
    items: list[SafeString]

    @property
    def anchor(self) -> str:
        return re.sub(r"\W+", "-", self.title.partition(" ")[0].lower()).strip("-")


class Changes(NamedTuple):
    about: str
    releases: list[Release]


def read_changelog(text: str) -> Changes:
    about, *releases = re.split(r"^## ", text, flags=re.MULTILINE)
    return Changes(" ".join(about.split("\n", 1)[1].split()), [read_release(each) for each in releases])


def read_release(text: str) -> Release:
    title, rest = text.split("\n", 1)
    items = re.split(r"^- ", rest, flags=re.MULTILINE)[1:]
    return Release(title.strip(), [with_marks(" ".join(item.split())) for item in items])


@cache
def shown_changes() -> Changes:
    return read_changelog((settings.BASE_DIR / "CHANGELOG.md").read_text())
