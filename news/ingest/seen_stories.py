"""What the newsroom has seen already, and drafts whose title changed in the feed since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from news.models import NewsItem, Source
from news.newsroom.decisions import STAFF, give_score
from news.sentiment.scoring import Scored

from .stories import OLDEST, WITHIN_MS, SeenTitles, Story, category_of, title_key
from .subjects import find_subjects

# Newer ones first; nobody writes more in nine days, and a machine that does is compared with its latest.
MOST_TITLES = 20_000
ADDRESS_WITHIN = 2 * OLDEST


class SeenStories:
    """Of the stories at hand; what is taken is added, so that a feed does not repeat itself either."""

    def __init__(self, source: Source, stories: Sequence[Story]) -> None:
        guids = [story.entry.guid_key for story in stories]
        seen = NewsItem.objects.filter(origin=source, guid_key__in=guids)
        self.by_guid = {item.guid_key: item for item in seen}
        self._guids = set(self.by_guid)
        self._addresses = _known_addresses(stories)
        self._titles = _known_titles(stories)

    def has_guid(self, story: Story) -> bool:
        return story.entry.guid_key in self._guids

    def has(self, story: Story) -> bool:
        return (
            self.has_guid(story)
            or story.address_key in self._addresses
            or self._titles.has_near(story.entry.title, story.published_ms)
        )

    def add(self, story: Story) -> None:
        self._guids.add(story.entry.guid_key)
        if story.address_key:
            self._addresses.add(story.address_key)
        self._titles.add(story.entry.title, story.published_ms)


def _known_addresses(stories: Sequence[Story]) -> set[str]:
    keys = [story.address_key for story in stories if story.address_key]
    if not keys:
        return set()
    since = min(story.published_at for story in stories) - ADDRESS_WITHIN
    known = NewsItem.objects.filter(address_key__in=keys, published_at__gte=since).exclude(address_key="")
    return set(known.values_list("address_key", flat=True))


def _known_titles(stories: Sequence[Story]) -> SeenTitles:
    titles = SeenTitles()
    if stories:
        within = timedelta(milliseconds=WITHIN_MS)
        earliest = min(story.published_at for story in stories) - within
        latest = max(story.published_at for story in stories) + within
        # By status, because that is how they are indexed.
        told = NewsItem.objects.filter(
            status__in=NewsItem.Status.values, published_at__gte=earliest, published_at__lte=latest
        )
        newest = told.order_by("-published_at").values_list("title", "published_at")[:MOST_TITLES]
        for title, at in newest:
            titles.add(title, to_ms(at))
    return titles


def to_ms(at: datetime) -> int:
    return round(at.astimezone(UTC).timestamp() * 1000)


Status = NewsItem.Status


def changed_item(known: SeenStories, story: Story) -> NewsItem | None:
    """A draft that reads as it came; what staff edited or decided stays as it is."""
    item = known.by_guid.get(story.entry.guid_key)
    is_changed = (
        item is not None
        and item.status == Status.DRAFT
        and item.model != STAFF
        and item.title_key != story.title_key
        and item.title_key == title_key(item.title)
    )
    return item if is_changed else None


def as_filed(story: Story, item: NewsItem, source: Source, instruments: Mapping[str, int]) -> Story:
    """In the category that the new title tells, unless staff chose another than the old one told."""
    told = category_of(find_subjects(item.title, instruments), source.category)
    return story if item.category == told else story._replace(category=item.category)


def take_change(
    item: NewsItem, story: Story, scored: Scored | None, source: Source, instruments: Mapping[str, int]
) -> bool:
    """False where staff were first."""
    category = as_filed(story, item, source, instruments).category
    told = set(find_subjects(item.title, instruments).symbols)
    # Only if it is still what was looked at: staff decide at any moment.
    seen = NewsItem.objects.filter(
        pk=item.pk, status=Status.DRAFT, title=item.title, category=item.category, model=item.model
    )
    item.title, item.summary, item.title_key = story.entry.title, story.entry.summary, story.title_key
    taken = seen.update(
        title=item.title,
        summary=item.summary,
        title_key=item.title_key,
        category=category,
        sentiment_score=None,
        model="",
    )
    if not taken:
        return False
    if {instrument.symbol for instrument in item.symbols.all()} == told:
        item.symbols.set([instruments[symbol] for symbol in story.symbols])
    # A score is about its category's asset.
    if scored is not None and category == story.category:
        give_score(item, scored, by="")
    return True
