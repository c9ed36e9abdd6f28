"""What the newsroom has seen already: by guid, by address, by the same title within 48 hours."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from news.models import NewsItem, Source

from .dating import OLDEST
from .similarity import WITHIN_MS, KnownTitles
from .stories import Story

# Newer ones first; nobody writes more in nine days, and a machine that does is compared with its latest.
MOST_TITLES = 20_000
ADDRESS_WITHIN = 2 * OLDEST


class Known:
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


def _known_titles(stories: Sequence[Story]) -> KnownTitles:
    titles = KnownTitles()
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
