"""Publishers and their scorecards, which are kept in memory and completed when somebody asks."""

from collections import OrderedDict
from datetime import datetime
from threading import Lock
from typing import NamedTuple
from uuid import UUID

from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from accounts.models import User
from signals_feed.ledger.names import HeldName
from signals_feed.models import Signal

from .scorecards import Scorecard, ScoredSignal

# The same text for unknown names, so that it does not reveal who has an account.
NO_SUCH_PUBLISHER = "Nobody with this name has published a signal. Use the name as the feed shows it."
MOST_KEPT = 1_000
COLUMNS = ("instrument__symbol", "close_reason", "closed_at", "pnl_r", "best_r", "worst_r")


class Publisher(NamedTuple):
    user_id: int
    name: str
    is_demo: bool
    active: int
    closed: int


def find(name: str) -> Publisher | None:
    """Also by a former name. None for a user who never published, and for a name that nobody has."""
    if "\0" in name:
        # PostgreSQL accepts no such text.
        return None
    found = named(name)
    present = HeldName.objects.bearer(name) if found is None else None
    return found if present is None else named(present)


def named(name: str) -> Publisher | None:
    found = User.objects.filter(username=name).annotate(
        is_demo=F("account__is_demo"),
        active=counted(Signal.Status.ACTIVE),
        closed=counted(Signal.Status.CLOSED),
    )
    row = found.values_list("pk", "is_demo", "active", "closed").first()
    if row is None or not (row[2] or row[3]):
        return None
    return Publisher(row[0], name, bool(row[1]), row[2], row[3])


def counted(status: str) -> Coalesce:
    """Counted from the index alone."""
    own = Signal.objects.filter(user=OuterRef("pk"), status=status).order_by().values("user")
    return Coalesce(Subquery(own.annotate(count=Count("pk")).values("count")), 0)


class KeptScorecard:
    """A publisher's scorecard and the last signal in it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.begin()

    def begin(self) -> None:
        self.scorecard = Scorecard()
        self.last: tuple[datetime, UUID] | None = None

    def add_to(self, closed: int, of: QuerySet[Signal]) -> None:
        if self.scorecard.all.signals == closed:
            return
        if self.scorecard.all.signals > closed:
            # The demo took its signals away.
            self.begin()
        self._read(of)
        if self.scorecard.all.signals < closed:
            # Some closed before the last known one: signals judged after an outage do.
            self.begin()
            self._read(of)

    def _read(self, signals: QuerySet[Signal]) -> None:
        if self.last is not None:
            at, pk = self.last
            signals = signals.filter(Q(closed_at__gt=at) | Q(closed_at=at, pk__gt=pk))
        for pk, *columns in signals.order_by("closed_at", "pk").values_list("pk", *COLUMNS).iterator():
            outcome = ScoredSignal(*columns)
            self.scorecard.add(outcome)
            self.last = outcome.closed_at, pk


class Scorecards:
    """The scorecards that this process keeps; closed signals never change, so all processes agree."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, KeptScorecard] = OrderedDict()
        self._lock = Lock()

    def read(self, publisher: Publisher) -> Scorecard:
        """A copy, which nobody changes."""
        kept = self._get(publisher.user_id)
        closed = Signal.objects.filter(user_id=publisher.user_id, status=Signal.Status.CLOSED)
        with kept.lock:
            kept.add_to(publisher.closed, closed)
            return kept.scorecard.copy()

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()

    def _get(self, user_id: int) -> KeptScorecard:
        with self._lock:
            kept = self._kept.setdefault(user_id, KeptScorecard())
            self._kept.move_to_end(user_id)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
            return kept


scorecards = Scorecards()
