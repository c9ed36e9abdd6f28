"""An entry of a feed as a story of ours: when it was, what it is about, by what it is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from datetime import datetime
from typing import NamedTuple

from .addresses import story_key
from .dating import published_at
from .parsing import Entry
from .similarity import title_key
from .subjects import Subjects, find_subjects

NO_SUBJECT = "macro"


class Story(NamedTuple):
    entry: Entry
    published_at: datetime
    category: str
    symbols: tuple[str, ...]
    is_recognised: bool
    """Whether its title, or its source, tells what it is about."""
    title_key: str
    address_key: str

    @property
    def published_ms(self) -> int:
        return round(self.published_at.timestamp() * 1000)


def read_stories(
    entries: Iterable[Entry], *, polled_at: datetime, hint: str, known: Container[str]
) -> tuple[list[Story], int]:
    """The stories, and how many entries are too old to be news. `hint` is the category of the source."""
    dated = [(entry, published_at(entry.published_ms, polled_at)) for entry in entries]
    fresh = [(entry, at) for entry, at in dated if at is not None]
    keys = {entry.address: story_key(entry.address) for entry, _ in fresh}
    times = Counter(keys[entry.address] for entry, _ in fresh)
    stories = []
    for entry, at in fresh:
        subjects = find_subjects(entry.title, known)
        # An address that several stories of a feed share is that of a page about all of them.
        key = keys[entry.address] if times[keys[entry.address]] == 1 else ""
        stories.append(
            Story(
                entry=entry,
                published_at=at,
                category=category_of(subjects, hint),
                symbols=subjects.symbols,
                is_recognised=bool(subjects.category or hint),
                title_key=title_key(entry.title),
                address_key=key,
            )
        )
    return stories, len(dated) - len(fresh)


def category_of(subjects: Subjects, hint: str) -> str:
    return subjects.category or hint or NO_SUBJECT
