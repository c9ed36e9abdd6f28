"""Publishers and their scorecards, which are kept in memory and completed on request."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from threading import Lock
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from accounts.models import User
from accounts.rights import PowerRefused
from core import clock
from core.contract.errors import Overloaded
from core.deadlines import patient
from core.times import moment
from instruments.catalogue import catalogue
from market import runtime as market
from market.models import LastQuote
from market.own_prices import covers
from signals_feed.exits import exit_price, gain
from signals_feed.ledger.names import HeldName
from signals_feed.models import Signal, SignalQuerySet
from signals_feed.rules import exact_price

from .record import Event, Filled, Mark, Record, Scorecard, place
from .stored_events import StoredSignal, stored_signals
from .verdicts import Judging, verdicts

# A publisher's signals, for themselves.
OWN = (
    *("id", "instrument__symbol", "direction", "entry", "stop_loss", "take_profit", "tradable_price"),
    *("fill_price", "filled_at", "status", "published_at", "expires_at", "cancel_reason", "cancelled_at"),
    *("close_price", "closed_at", "close_reason", "pnl", "pnl_percent", "pnl_r", "best_r", "worst_r"),
)


def has_published(user: User) -> bool:
    return Signal.objects.filter(user=user).exists()


REFUSED = (
    "{user} has open signals on {symbols}, but users who may make their prices can have none. "
    "Wait until they have ended, or cancel them."
)


def refuse_open_signals(user: User, symbols: str, **_: Any) -> None:
    """A user who may make prices has none on them."""
    own = Signal.objects.active().filter(user=user).values_list("instrument__symbol", flat=True)
    if found := sorted({symbol for symbol in own if covers(symbols, symbol)}):
        raise PowerRefused(REFUSED.format(user=user, symbols=", ".join(found)))


def own_signals(user: User) -> Iterable[Mapping[str, object]]:
    own = Signal.objects.filter(user=user).order_by("published_at", "pk")
    rows: Iterable[Mapping[str, object]] = own.values(*OWN)
    return rows


# What open signals would gain if they closed now.
class PresentPrices:
    """Those of one answer, so that each instrument is looked up once."""

    def __init__(self) -> None:
        self._quotes: dict[str, tuple[Decimal, Decimal] | None] = {}

    def mark(self, filled: Filled) -> Mark:
        if filled.symbol not in self._quotes:
            self._quotes[filled.symbol] = bid_and_ask(filled.symbol)
        quote = self._quotes[filled.symbol]
        if quote is None:
            # Its result is unknown: a loser must not stay out of the figures for ever.
            is_over = filled.expires_at < moment(clock.now_ms())
            return Mark(-filled.distance if is_over else Decimal(0))
        gained = gain(filled.direction, filled.paid, exit_price(filled.direction, *quote))
        return Mark(gained if filled.holds else min(gained, Decimal(0)))


def bid_and_ask(symbol: str) -> tuple[Decimal, Decimal] | None:
    """The last ones, also of an instrument that was deactivated since. None while they are withheld, because
    a figure would reveal them."""
    facts = catalogue.known(symbol)
    if facts is None or facts.is_withheld:
        return None
    if quote := market.quote(symbol):
        return exact_price(quote.bid), exact_price(quote.ask)
    stored = LastQuote.objects.filter(pk=facts.id).values_list("bid", "ask").first()
    bid, ask = stored or (None, None)
    return None if bid is None or ask is None else (round(bid, facts.digits), round(ask, facts.digits))


# Pages of a list of signals, by their numbers.
PER_PAGE = 20


class SignalsPage(NamedTuple):
    number: int
    first: int
    """The signal at its top, counted from the newest, which is 1."""
    last: int
    total: int

    @property
    def newer(self) -> int:
        """The number of the page before it; 0 if there is none."""
        return self.number - 1

    @property
    def older(self) -> int:
        return self.number + 1 if self.last < self.total else 0


def read_page(text: str, total: int) -> SignalsPage:
    """The first page for what is no number, the last one for a number beyond it."""
    asked = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 1
    number = min(max(asked, 1), max(1, -(-total // PER_PAGE)))
    return SignalsPage(number, (number - 1) * PER_PAGE + 1, min(number * PER_PAGE, total), total)


# The same text for unknown names, so that it does not reveal who has an account.
NO_SUCH_PUBLISHER = "Nobody with this name has published a signal. Use the name as the feed shows it."
MOST_KEPT = 1_000
# Visitors who wait for a long record would keep the pages' threads from all others.
WAIT_S = patient(1.0)
ACTIVE, CLOSED = Q(status=Signal.Status.ACTIVE), Q(status=Signal.Status.CLOSED)
WAITING = ACTIVE & Q(rules=2, fill_price=None)


class Publisher(NamedTuple):
    user_id: int
    name: str
    is_demo: bool
    active: int
    waiting: int
    """Those of them that are not filled yet."""
    closed: int
    last_at: datetime
    """When the newest signal was published."""

    @property
    def filled(self) -> int:
        """Those that are open and filled."""
        return self.active - self.waiting


def find(name: str) -> Publisher | None:
    """Also by a former name. None for a user who never published, and for an unused name."""
    if "\0" in name:
        # PostgreSQL accepts no such text.
        return None
    found = named(name)
    present = HeldName.objects.bearer(name) if found is None else None
    return found if present is None else named(present)


def named(name: str) -> Publisher | None:
    own = Signal.objects.filter(user=OuterRef("pk")).order_by().values("user")
    found = User.objects.filter(username=name).annotate(
        is_demo=F("account__is_demo"),
        # Counted from the index alone, but for the few that are active.
        active=counted(own.filter(ACTIVE)),
        waiting=counted(own.filter(WAITING)),
        closed=counted(own.filter(CLOSED)),
        last_at=Subquery(own.order_by("-published_at", "-pk").values("published_at")[:1]),
    )
    row = found.values_list("pk", "username", "is_demo", "active", "waiting", "closed", "last_at").first()
    return None if row is None or row[-1] is None else Publisher(*row)._replace(is_demo=bool(row[2]))


def counted(own: QuerySet[Signal, Any]) -> Coalesce:
    return Coalesce(Subquery(own.annotate(count=Count("pk")).values("count")), 0)


class KeptScorecard:
    """A publisher's record and how far it has come."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.begin()

    def begin(self) -> None:
        self.record = Record()
        self._last: Event | None = None
        self._last_closed: tuple[datetime, UUID] | None = None

    @property
    def closed(self) -> int:
        return self.record.closed + self.record.unfilled + self.record.late

    def add_to(self, publisher: Publisher, of: SignalQuerySet, judging: Judging) -> None:
        if self.record.unjudged and verdicts.knows(self.record.unjudged):
            self.begin()
        if (self.closed, len(self.record.open)) == (publisher.closed, publisher.filled):
            return
        if self.closed > publisher.closed:
            # The demo took its signals away.
            self.begin()
        if not self._read(of, judging) or self.closed < publisher.closed:
            # Some were filled or closed before the last that was known: signals judged after an outage are.
            self.begin()
            self._read(of, judging)

    def _read(self, signals: SignalQuerySet, judging: Judging) -> bool:
        """False if something comes before what is known."""
        closed = CLOSED
        if self._last_closed is not None:
            at, pk = self._last_closed
            closed &= Q(closed_at__gt=at) | Q(closed_at=at, pk__gt=pk)
        new: list[Event] = []
        unfilled, late, last_closed = 0, 0, self._last_closed
        rows = list(stored_signals(signals.filter(closed | ACTIVE & ~WAITING)))
        judging.judge([row for row in rows if row.is_ahead])
        for row in rows:
            if row.closed_at is not None:
                last_closed = max(last_closed or (row.closed_at, row.key), (row.closed_at, row.key))
            if row.is_late:
                late += row.closed_at is not None
                continue
            if not row.is_filled:
                unfilled += 1
                continue
            holds = self._holds(row)
            if row.key not in self.record.open:
                new.append(row.fill(holds=holds))
            if (close := row.close(holds=holds)) is not None:
                new.append(close)
        new.sort(key=place)
        if new and self._last is not None and place(new[0]) < place(self._last):
            return False
        for event in new:
            self.record.add(event)
        self.record.unfilled += unfilled
        self.record.late += late
        self._last_closed, self._last = last_closed, new[-1] if new else self._last
        return True

    def _holds(self, row: StoredSignal) -> bool:
        holds = verdicts.of(row) if row.is_ahead else True
        if holds is None:
            self.record.unjudged.add(hash(row))
        elif not holds:
            self.record.contradicted.add(row.key)
        return bool(holds)


class Scorecards:
    """The records that this process keeps; closed signals never change, so all processes agree."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, KeptScorecard] = OrderedDict()
        self._lock = Lock()

    def read(
        self,
        publisher: Publisher,
        present: PresentPrices | None = None,
        judging: Judging | None = None,
        patience_s: float | None = None,
    ) -> Scorecard:
        """As it is now; it is immutable. Raises Overloaded if another reads it for longer than this, or than
        visitors wait; below 0 there is no limit."""
        present, kept = present or PresentPrices(), self._get(publisher.user_id)
        if not kept.lock.acquire(timeout=WAIT_S if patience_s is None else patience_s):
            raise Overloaded(retry_after=2)
        try:
            own = Signal.objects.filter(user_id=publisher.user_id)
            kept.add_to(publisher, own, judging or Judging())
            marks = {key: present.mark(filled) for key, filled in kept.record.open.items()}
            return kept.record.read(marks, moment(clock.now_ms()))
        finally:
            kept.lock.release()

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
