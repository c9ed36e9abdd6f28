"""The marks of a publisher's results, as checked a short while ago against evidence and ledger, and which of
their signals a witness saw before they ended."""

from __future__ import annotations

import json
import time
from collections import Counter, OrderedDict
from collections.abc import Collection, Sequence
from datetime import datetime
from threading import Lock
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import OuterRef, Subquery

from core.cached import Cached
from core.times import read_iso
from signals_feed.ledger.ledger import LedgerEntry
from signals_feed.marks import Mark
from signals_feed.models import Signal
from signals_feed.publishers.lookup import Publisher
from signals_feed.record import CLOSE, PUBLISH
from signals_feed.result_checks import check_signals
from transparency.models import SignedCheckpoint

# A check of one publisher computes no more than this, however long they have published.
MOST_CHECKED = 500
# A result never changes. If it is tampered with, a visitor sees that after this long.
FRESH_S = 300
# At most this often after new results, however many come.
AGAIN_S = 5
MOST_KEPT, MOST_SIGNALS = 1_000, 20_000


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


class PublisherCheck(NamedTuple):
    found: CheckedResults
    filled: int
    closed: int


class CheckedPublishers:
    """As they were found a short while ago: each check reads hundreds of rows."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[int, Cached[PublisherCheck]] = OrderedDict()

    def clear(self) -> None:
        self._kept.clear()

    def of(self, publisher: Publisher) -> CheckedResults:
        counts = publisher.filled, publisher.closed
        kept = self._get(publisher.user_id)
        is_same = kept.last is not None and kept.last[1:] == counts
        # Not under the lock: others need not wait for another publisher's figures.
        check = kept.get(
            FRESH_S if is_same else AGAIN_S, lambda _: PublisherCheck(check_publisher(publisher), *counts)
        )
        return check.found

    def _get(self, user_id: int) -> Cached[PublisherCheck]:
        with self._lock:
            kept = self._kept.setdefault(user_id, Cached())
            self._kept.move_to_end(user_id)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
            return kept


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


class SignalCheck(NamedTuple):
    mark: Mark | None
    state: tuple[object, ...]
    at_s: float

    def is_fresh(self, signal: Signal) -> bool:
        fresh_s = AGAIN_S if signal.closed_at is None else FRESH_S
        return self.state == state_of(signal) and time.monotonic() - self.at_s < fresh_s


def state_of(signal: Signal) -> tuple[object, ...]:
    return signal.fill_price, signal.closed_at


class CheckedSignals:
    """The marks of single signals, as they were found a short while ago."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[UUID, SignalCheck] = OrderedDict()

    def clear(self) -> None:
        self._kept.clear()

    def of(self, signals: Sequence[Signal]) -> dict[UUID, Mark | None]:
        kept = {each.pk: self._kept.get(each.pk) for each in signals}
        fresh = {each.pk: check for each in signals if (check := kept[each.pk]) and check.is_fresh(each)}
        stale = [each for each in signals if each.pk not in fresh]
        found, at_s = check_signals(stale), time.monotonic()
        new = {each.pk: SignalCheck(found[each.pk].mark, state_of(each), at_s) for each in stale}
        with self._lock:
            self._kept |= new
            while len(self._kept) > MOST_SIGNALS:
                self._kept.popitem(last=False)
        return {pk: check.mark for pk, check in (fresh | new).items()}


checked_results, checked_marks = CheckedPublishers(), CheckedSignals()


def witnessed_before_end(entries: Collection[LedgerEntry]) -> dict[UUID, bool | None]:
    """Of the signals that these publish or close. None for one that is active, until a witness sees it."""
    of = {kind: {each.signal: each for each in entries if each.kind == kind} for kind in (PUBLISH, CLOSE)}
    seen = _seen_at([each.position for each in of[PUBLISH].values()])
    return {pk: _is_before(seen.get(each.position), of[CLOSE].get(pk)) for pk, each in of[PUBLISH].items()}


def _seen_at(positions: Collection[int]) -> dict[int, datetime]:
    """When a witness first cosigned a ledger with these entries."""
    found: dict[int, datetime] = {}
    entries = LedgerEntry.objects.filter(position__in=positions)
    for witness in settings.WITNESSES:
        covering = SignedCheckpoint.objects.of_current_log().filter(
            cosignatures__witness=str(witness.key), size__gte=OuterRef("position")
        )
        first = covering.order_by("size").values("cosignatures__first_at")[:1]
        for position, at in entries.annotate(at=Subquery(first)).values_list("position", "at"):
            if at is not None:
                found[position] = min(at, found.get(position, at))
    return found


def _is_before(seen_at: datetime | None, close: LedgerEntry | None) -> bool | None:
    if close is None:
        return None if seen_at is None else True
    written = json.loads(close.payload)
    # Older entries do not say when they were written.
    return seen_at is not None and seen_at < read_iso(written.get("written", written["closed_at"]))
