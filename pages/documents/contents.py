"""The table of contents: every page of the documentation, in reading order."""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from . import reference, rendering, stream_reference

# In reading order. Whatever else lies in a folder follows; what lies in none of these ends the last section.
GUIDES = (
    *("guides/start", "guides/keys-and-tiers", "guides/streams"),
    *("signals", "news", "sentiment", "analysis", "archive", "archive-rest", "data", "ingest", "feeds"),
)
OPERATE = (
    *("operate/install", "operate/settings", "operate/accounts", "operate/security", "operate/processes"),
    *(
        "operate/redis-and-postgresql",
        "operate/sizing",
        "operate/scale",
        "operate/upgrade",
        "operate/backup",
        "operate/witnesses",
    ),
    *("operate/doctor", "operate/logs", "metrics", "operate/runbook", "connections"),
)
PROJECT = ("architecture", "reliability", "performance", "glossary", "develop/contributing")


class Entry(NamedTuple):
    title: str
    path: str
    label: str = ""
    """Of a group within the section, above its first entry."""


class ContentsSection(NamedTuple):
    title: str
    entries: list[Entry]

    def has(self, path: str) -> bool:
        return any(entry.path == path for entry in self.entries)


class PlaceInContents(NamedTuple):
    """Where a page stands, and what comes before and after it."""

    section: ContentsSection
    entry: Entry
    before: Entry | None
    after: Entry | None


START = (
    Entry("Quick start", "/docs"),
    Entry("Official clients", "/docs/clients"),
    Entry("Without a client", "/docs/without-client"),
    Entry("How it is computed", "/docs/computed"),
)


@cache
def sections() -> tuple[ContentsSection, ...]:
    found = [
        ContentsSection("Start", [*START]),
        ContentsSection("Guides", documents(GUIDES, "guides/")),
        ContentsSection("REST API", [*rest_entries()]),
        ContentsSection("Streams", [*stream_entries()]),
        ContentsSection("Operate", documents(OPERATE, "operate/")),
        ContentsSection("Project", [*documents(PROJECT, ""), Entry("Changelog", "/docs/changelog")]),
    ]
    return tuple(section for section in found if section.entries)


def documents(named: tuple[str, ...], folder: str) -> list[Entry]:
    """Those that are there, and then whatever else lies in the folder; without one, in none that is named."""
    known = [name for name in named if name in rendering.names()]
    elsewhere = {*GUIDES, *OPERATE, *PROJECT}
    others = [name for name in rendering.names() if is_in(name, folder) and name not in elsewhere]
    return [document_entry(name) for name in [*known, *others]]


def is_in(name: str, folder: str) -> bool:
    return name.startswith(folder) if folder else not name.startswith(("guides/", "operate/"))


def document_entry(name: str) -> Entry:
    return Entry(rendering.title_of(name), f"/docs/{name}")


def rest_entries() -> Iterator[Entry]:
    yield from (
        Entry("Conventions", "/docs/api"),
        Entry("Headers", "/docs/api/headers"),
        Entry("Errors", "/docs/api/errors"),
    )
    for group in reference.groups():
        for number, operation in enumerate(group.operations):
            yield Entry(operation.label, operation.address, "" if number else group.title)


def stream_entries() -> Iterator[Entry]:
    yield Entry("Connecting", "/docs/streams")
    yield Entry("Messages", "/docs/streams/messages")
    yield Entry("Errors and close codes", "/docs/streams/errors")
    for number, stream in enumerate(stream_reference.described_streams().values()):
        yield Entry(stream.title, stream.address, "" if number else "The streams")


def place_of(path: str) -> PlaceInContents | None:
    every = [(section, entry) for section in sections() for entry in section.entries]
    paths = [entry.path for _, entry in every]
    if path not in paths:
        return None
    at = paths.index(path)
    section, entry = every[at]
    before = every[at - 1][1] if at else None
    return PlaceInContents(section, entry, before, every[at + 1][1] if at + 1 < len(every) else None)
