"""Turns the stories of a feed into drafts, each story only once, whichever feed had it first. Those of a
trusted source may be published at once, and a draft follows its feed when the title changes."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from django.db import transaction
from django.db.models import QuerySet

from instruments.models import Instrument
from news.entering import enter_feed
from news.models import ItemScore, NewsItem, Source
from news.scoring import STAFF, Scorer, give_score, score_in_time
from news.sentiment import Score

from .parsing import ParsedFeed
from .stories import (
    OLDEST,
    TOLD_ANEW_AFTER,
    SeenTitles,
    Story,
    category_of,
    find_subjects,
    read_stories,
    title_key,
)

Status = NewsItem.Status
Judged = tuple[Story, Score | None]
WORDS = {"old": "too old", "untitled": "without a title", "left_out": "left out"}
# More titles than people write in nine days; those of a machine are compared with its newest ones.
MOST_TITLES = 20_000
ADDRESS_WITHIN = 2 * OLDEST


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


class FeedReading(NamedTuple):
    """A feed's entries as stories, and those of them that look new or changed."""

    feed: ParsedFeed
    stories: list[Story]
    old: int
    to_judge: list[Story]
    instruments: Mapping[str, int]


def read(source: Source, feed: ParsedFeed, polled_at: datetime) -> FeedReading:
    instruments = dict(Instrument.objects.filter(active=True).values_list("symbol", "pk"))
    stories, old = read_stories(
        feed.entries, polled_at=polled_at, hint=source.category, known=instruments.keys()
    )
    seen = SeenStories(source, stories)
    changed = [
        as_filed(story, draft, source, instruments)
        for story in stories
        if (draft := seen.changed_draft(story)) is not None
    ]
    return FeedReading(feed, stories, old, [*changed, *filter(seen.take, stories)], instruments)


def judge(source: Source, reading: FeedReading, scorer: Scorer) -> list[Judged]:
    """Scores what looks new, before any transaction begins: a model may be slow, and cost money."""
    if source.language != Source.Language.ENGLISH:
        return [(story, None) for story in reading.to_judge]
    titles = [(story.entry.title, story.category) for story in reading.to_judge]
    return list(zip(reading.to_judge, score_in_time(titles, scorer), strict=True))


def store(source: Source, reading: FeedReading, judged: Sequence[Judged]) -> IntakeTally:
    with transaction.atomic():
        # The row of the first source is the lock of the intake, or two feeds could both find a story new.
        Source.objects.select_for_update().order_by("pk").values_list("pk").first()
        seen = SeenStories(source, reading.stories)
        changes = [(seen.changed_draft(story), story, scored) for story, scored in judged]
        changed = sum(
            take_change(draft, story, scored, source, reading.instruments)
            for draft, story, scored in changes
            if draft is not None
        )
        new = [one for one in judged if seen.take(one[0])]
        published = _store_new(source, new, reading.instruments)
    return IntakeTally(
        new=len(new),
        published=published,
        changed=changed,
        known=len(reading.stories) - len(new) - changed,
        old=reading.old,
        untitled=reading.feed.untitled,
        left_out=reading.feed.left_out,
    )


def _store_new(source: Source, new: Sequence[Judged], instruments: Mapping[str, int]) -> int:
    """Stores everything in bulk, and returns how many items were published."""
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
        # Feeds have their newest entries first.
        in_order = sorted(published, key=attrgetter("published_at"))
        enter_feed(in_order, max(item.arrived_at for item in published))
    return len(published)


def _item(source: Source, story: Story, scored: Score | None) -> NewsItem:
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


class SeenStories:
    """Which of the given stories are stored already, or were taken since."""

    def __init__(self, source: Source, stories: Sequence[Story]) -> None:
        guids = [story.entry.guid_key for story in stories]
        items = NewsItem.objects.filter(origin=source, guid_key__in=guids)
        self._by_guid = {item.guid_key: item for item in items}
        self._guids = set(self._by_guid)
        times = [story.published_at for story in stories]
        keys = {story.address_key for story in stories} - {""}
        self._addresses = set(_seen_addresses(keys, min(times)) if times else ())
        self._titles = SeenTitles(_seen_titles(min(times), max(times)) if times else ())

    def take(self, story: Story) -> bool:
        """Whether the story is new. It counts as known afterwards, also within the same feed."""
        title, published_at = story.entry.title, story.published_at
        if (
            story.entry.guid_key in self._guids
            or story.address_key in self._addresses
            or self._titles.has_near(title, published_at)
        ):
            return False
        self._guids.add(story.entry.guid_key)
        if story.address_key:
            self._addresses.add(story.address_key)
        self._titles.add(title, published_at)
        return True

    def changed_draft(self, story: Story) -> NewsItem | None:
        """The draft whose title changed in the feed, unless staff have edited or decided it."""
        item = self._by_guid.get(story.entry.guid_key)
        is_changed = (
            item is not None
            and item.status == Status.DRAFT
            and item.model != STAFF
            and item.title_key != story.title_key
            and item.title_key == title_key(item.title)
        )
        return item if is_changed else None


def _seen_addresses(keys: set[str], since: datetime) -> QuerySet[NewsItem, str]:
    items = NewsItem.objects.filter(address_key__in=keys, published_at__gte=since - ADDRESS_WITHIN)
    return items.exclude(address_key="").values_list("address_key", flat=True)


def _seen_titles(earliest: datetime, latest: datetime) -> QuerySet[NewsItem, tuple[str, datetime]]:
    within = (earliest - TOLD_ANEW_AFTER, latest + TOLD_ANEW_AFTER)
    # The status is named because the index begins with it.
    items = NewsItem.objects.filter(status__in=Status.values, published_at__range=within)
    return items.order_by("-published_at").values_list("title", "published_at")[:MOST_TITLES]


def as_filed(story: Story, item: NewsItem, source: Source, instruments: Mapping[str, int]) -> Story:
    """In the category of its new title, unless staff had chosen another one than the old title suggested."""
    by_title = category_of(find_subjects(item.title, instruments), source.category)
    return story if item.category == by_title else story._replace(category=item.category)


def take_change(
    item: NewsItem, story: Story, scored: Score | None, source: Source, instruments: Mapping[str, int]
) -> bool:
    """Returns False if staff were faster."""
    category = as_filed(story, item, source, instruments).category
    symbols_by_title = set(find_subjects(item.title, instruments).symbols)
    # Only if it is unchanged since it was read: staff may decide at any moment.
    unchanged = NewsItem.objects.filter(
        pk=item.pk, status=Status.DRAFT, title=item.title, category=item.category, model=item.model
    )
    item.title = story.entry.title
    from_feed = {"title": item.title, "summary": story.entry.summary, "title_key": story.title_key}
    if not unchanged.update(**from_feed, category=category, sentiment_score=None, model=""):
        return False
    if {instrument.symbol for instrument in item.symbols.all()} == symbols_by_title:
        item.symbols.set([instruments[symbol] for symbol in story.symbols])
    # A score is about the asset of its category.
    if scored is not None and category == story.category:
        give_score(item, scored, by="")
    return True
