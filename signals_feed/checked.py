"""The marks of a publisher's results, checked against evidence and ledger a short while ago."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Collection
from threading import Lock
from typing import NamedTuple
from uuid import UUID

from django.conf import settings

from signals_feed.checking import check_signals
from signals_feed.ledger.ledger import LedgerEntry
from signals_feed.ledger.witnessed import witnessed_before_end
from signals_feed.marks import Mark
from signals_feed.models import Signal
from signals_feed.record import CLOSE, PUBLISH

from .publishers.lookup import Publisher

# A check of one publisher computes no more than this, however long they have published.
MOST_CHECKED = 500
# A result never changes. This is how soon a visitor sees that somebody changed it all the same.
FRESH_S = 300
MOST_KEPT = 1_000


class CheckedResults(NamedTuple):
    marks: Counter[Mark] = Counter()
    """Of the open signals and the newest results; a signal without a fill has none."""
    witnessed_before_end: int = 0

    @property
    def checked(self) -> int:
        return self.marks.total()

    @property
    def counts(self) -> list[tuple[Mark, int]]:
        """Of the marks that there are."""
        return [(mark, self.marks[mark]) for mark in Mark if self.marks[mark]]


class Kept(NamedTuple):
    found: CheckedResults
    filled: int
    closed: int
    at_s: float

    def is_fresh(self, publisher: Publisher) -> bool:
        is_same = (self.filled, self.closed) == (publisher.filled, publisher.closed)
        return is_same and time.monotonic() - self.at_s < FRESH_S


class CheckedPublishers:
    """As they were found a short while ago: each check reads hundreds of rows."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[int, Kept] = OrderedDict()

    def clear(self) -> None:
        self._kept.clear()

    def of(self, publisher: Publisher) -> CheckedResults:
        kept = self._kept.get(publisher.user_id)
        if kept is not None and kept.is_fresh(publisher):
            return kept.found
        # Not under the lock: others need not wait for what is about somebody else.
        kept = Kept(check_publisher(publisher), publisher.filled, publisher.closed, time.monotonic())
        with self._lock:
            self._kept[publisher.user_id] = kept
            self._kept.move_to_end(publisher.user_id)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return kept.found


def check_publisher(publisher: Publisher) -> CheckedResults:
    own = Signal.objects.filter(user_id=publisher.user_id).select_related("instrument")
    newest = own.with_status("closed").order_by("-closed_at", "-pk")[:MOST_CHECKED]
    checks = check_signals([*newest, *own.active()])
    marks = {pk: check.mark for pk, check in checks.items() if check.mark is not None}
    return CheckedResults(Counter(marks.values()), how_many_witnessed(marks))


def how_many_witnessed(signals: Collection[UUID]) -> int:
    if not settings.WITNESSES:
        return 0
    entries = LedgerEntry.objects.filter(signal__in=signals, kind__in=(PUBLISH, CLOSE))
    return sum(map(bool, witnessed_before_end(list(entries)).values()))


checked_results = CheckedPublishers()
