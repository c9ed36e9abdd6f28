"""Stories of a feed become drafts, each once; of a trusted source they may be published at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.db import transaction

from instruments.models import Instrument
from news.calibration.outcomes import open_outcomes
from news.models import ItemScore, NewsItem, Source
from news.sentiment.scoring import Scored, Scorer, patiently

from .parsing import ParsedFeed
from .seen_stories import SeenStories, as_filed, changed_item, take_change
from .stories import Story, read_stories

Status = NewsItem.Status
Judged = tuple[Story, Scored | None]
WORDS = {"old": "too old", "untitled": "without a title", "left_out": "left out"}


class IntakeTally(NamedTuple):
    """What became of a feed's entries."""

    new: int = 0
    published: int = 0
    changed: int = 0
    known: int = 0
    old: int = 0
    untitled: int = 0
    left_out: int = 0

    def __str__(self) -> str:
        return ", ".join(
            f"{count} {WORDS.get(name, name)}" for name, count in self._asdict().items() if count
        )


class Reading(NamedTuple):
    """A feed's entries as stories, and those of them that look new."""

    feed: ParsedFeed
    stories: list[Story]
    old: int
    wanted: list[Story]
    instruments: dict[str, int]


def take(source: Source, feed: ParsedFeed, polled_at: datetime, scorer: Scorer) -> IntakeTally:
    """The three steps in one; a poll takes each in a thread of its kind."""
    reading = read(source, feed, polled_at)
    return store(source, reading, judge(source, reading, scorer))


def read(source: Source, feed: ParsedFeed, polled_at: datetime) -> Reading:
    instruments = dict(Instrument.objects.filter(active=True).values_list("symbol", "pk"))
    stories, old = read_stories(
        feed.entries, polled_at=polled_at, hint=source.category, known=instruments.keys()
    )
    known = SeenStories(source, stories)
    changed = [
        as_filed(story, item, source, instruments)
        for story in stories
        if (item := changed_item(known, story)) is not None
    ]
    wanted = [*changed, *(story for story in stories if _is_new(known, story))]
    return Reading(feed, stories, old, wanted, instruments)


def judge(source: Source, reading: Reading, scorer: Scorer) -> list[Judged]:
    """Before the database is held up, and only what looks new: a model may take its time, and money."""
    if source.language != Source.Language.ENGLISH:
        return [(story, None) for story in reading.wanted]
    ask = patiently(scorer)
    return [(story, ask(story.entry.title, story.category)) for story in reading.wanted]


def store(source: Source, reading: Reading, judged: Sequence[Judged]) -> IntakeTally:
    with transaction.atomic():
        _one_at_a_time()
        known = SeenStories(source, reading.stories)
        changed = _changed(known, source, reading, judged)
        new = [one for one in judged if _is_new(known, one[0])]
        published = _store(source, new, reading.instruments)
    return IntakeTally(
        new=len(new),
        published=published,
        changed=changed,
        known=len(reading.stories) - len(new) - changed,
        old=reading.old,
        untitled=reading.feed.untitled,
        left_out=reading.feed.left_out,
    )


def _is_new(known: SeenStories, story: Story) -> bool:
    if known.has(story):
        return False
    known.add(story)
    return True


def _changed(known: SeenStories, source: Source, reading: Reading, judged: Sequence[Judged]) -> int:
    """How many drafts took their new titles."""
    found = [(changed_item(known, story), story, scored) for story, scored in judged]
    return sum(
        take_change(item, story, scored, source, reading.instruments)
        for item, story, scored in found
        if item is not None
    )


def _one_at_a_time() -> None:
    """The first source's row is the lock of the intake: two feeds with one story would both find it new."""
    Source.objects.select_for_update().order_by("pk").values_list("pk").first()


def _store(source: Source, new: Sequence[Judged], instruments: dict[str, int]) -> int:
    """All at once; returns how many were published."""
    items = NewsItem.objects.bulk_create(_item(source, story, scored) for story, scored in new)
    rows = list(zip(items, new, strict=True))
    through = NewsItem.symbols.through
    through.objects.bulk_create(
        through(newsitem_id=item.pk, instrument_id=instruments[symbol])
        for item, (story, _) in rows
        for symbol in story.symbols
    )
    ItemScore.objects.bulk_create(
        ItemScore(item=item, title=item.title, score=scored.score, model=scored.model, version=scored.version)
        for item, (_, scored) in rows
        if scored is not None
    )
    published = [item for item in items if item.status == Status.PUBLISHED]
    if published:
        open_outcomes(published, max(item.arrived_at for item in published))
    return len(published)


def _item(source: Source, story: Story, scored: Scored | None) -> NewsItem:
    may_publish = source.trust == Source.Trust.PUBLISH and story.is_recognised and scored is not None
    return NewsItem(
        title=story.entry.title,
        summary=story.entry.summary,
        url=story.entry.address,
        source=source.name,
        category=story.category,
        status=Status.PUBLISHED if may_publish else Status.DRAFT,
        sentiment_score=None if scored is None else scored.score,
        model="" if scored is None else scored.model,
        published_at=story.published_at,
        origin=source,
        guid_key=story.entry.guid_key,
        address_key=story.address_key,
        title_key=story.title_key,
    )
