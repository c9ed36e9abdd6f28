"""CHANGELOG.md, release by release."""

import re
from functools import cache
from pathlib import PurePosixPath
from typing import NamedTuple

from django.conf import settings
from django.utils.safestring import SafeString

from .files import address_of
from .rendering import with_marks


class Release(NamedTuple):
    title: str
    items: list[SafeString]

    @property
    def anchor(self) -> str:
        return re.sub(r"\W+", "-", self.title.partition(" ")[0].lower()).strip("-")


class Changes(NamedTuple):
    about: SafeString
    releases: list[Release]


def read_changelog(text: str) -> Changes:
    about, *releases = re.split(r"^## ", text, flags=re.MULTILINE)
    return Changes(in_one_line(about.split("\n", 1)[1]), [read_release(each) for each in releases])


def read_release(text: str) -> Release:
    title, rest = text.split("\n", 1)
    items = re.split(r"^- ", rest, flags=re.MULTILINE)[1:]
    return Release(title.strip(), [in_one_line(item) for item in items])


def in_one_line(text: str) -> SafeString:
    return with_marks(" ".join(text.split()), address)


def address(link: str) -> str | None:
    """The file stands beside the folder of the documents, which it names."""
    return address_of(link.removeprefix("docs/"), PurePosixPath())


@cache
def shown_changes() -> Changes:
    return read_changelog((settings.BASE_DIR / "CHANGELOG.md").read_text())
