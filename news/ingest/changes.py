"""A draft whose title changes in the feed takes the new one, with all that was found by the old one."""

from __future__ import annotations

from collections.abc import Mapping

from news.models import NewsItem, Source
from news.scoring import Scored
from news.services import STAFF, give_score

from .known import Known
from .similarity import title_key
from .stories import Story, category_of
from .subjects import find_subjects

Status = NewsItem.Status


def changed_item(known: Known, story: Story) -> NewsItem | None:
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
