"""How items enter the feed, in the transaction in which they are published."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from news.calibration import open_outcomes
from news.models import NewsAnnouncement, NewsItem


def enter_feed(items: Sequence[NewsItem], at: datetime, *, by: str = "") -> None:
    """Opens their outcomes and announces them in their order. As the last act of the transaction: events are
    published. What had entered before keeps both. `by` is the curator who published them, if one did."""
    open_outcomes(items, at)
    announce(items, by=by)


def announce(items: Sequence[NewsItem], *, by: str = "") -> None:
    known = set(NewsAnnouncement.objects.filter(item__in=keys(items)).values_list("item_id", flat=True))
    new = [pk for pk in keys(items) if pk not in known]
    if not new:
        return
    facts = ({"item": pk} for pk in new)
    events = ControlEvent.objects.publish_each(EventKind.NEWS_PUBLISHED, facts, by=by)
    # After the events, but these rows lock nothing that the transaction does not hold already.
    NewsAnnouncement.objects.bulk_create(
        NewsAnnouncement(position=event.position, item_id=pk) for event, pk in zip(events, new, strict=True)
    )


def keys(items: Iterable[NewsItem]) -> list[int]:
    return [item.pk for item in items]
