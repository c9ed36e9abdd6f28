"""Everybody who ever published, in an order: those with too few signals come last."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import Count, Max, Min, Q, QuerySet

from accounts.models import User
from signals_feed.models import PERMISSION, Signal

from .lookup import Publisher, scorecards
from .scorecards import Scorecard

# The only backend that knows of permissions.
BACKEND = "django.contrib.auth.backends.ModelBackend"


class PublisherStanding(NamedTuple):
    publisher: Publisher
    card: Scorecard
    since: datetime
    """When the first signal was published."""
    last: datetime
    may_publish: bool

    @property
    def cancelled(self) -> int:
        return self.card.by_reason[Signal.CloseReason.CANCELLED]


def may_publish() -> QuerySet[User]:
    return User.objects.with_perm(PERMISSION, backend=BACKEND)


def read_standings() -> list[PublisherStanding]:
    """Of every publisher, also of those who stopped or whose account is gone: their signals stay."""
    by_status = {status.value: Count("pk", filter=Q(status=status)) for status in Signal.Status}
    rows = (
        Signal.objects.order_by()
        .values_list("user_id", "user__username", "user__account__is_demo")
        .annotate(**by_status, since=Min("published_at"), last=Max("published_at"))
    )
    allowed = set(may_publish().values_list("pk", flat=True))
    standings = []
    for user_id, name, is_demo, active, closed, since, last in rows:
        publisher = Publisher(user_id, name, bool(is_demo), active, closed)
        standings.append(
            PublisherStanding(publisher, scorecards.read(publisher), since, last, user_id in allowed)
        )
    return standings


class Order(NamedTuple):
    title: str
    value: Callable[[PublisherStanding], Any]
    """None where there is nothing to compare yet."""
    is_highest_first: bool = True


def of_results(standing: PublisherStanding, figure: Decimal) -> Decimal | None:
    """A sum over no results is 0, but no figure of theirs."""
    return figure if standing.card.all.signals else None


ORDERS = {
    "name": Order("Publisher", lambda each: each.publisher.name.casefold(), is_highest_first=False),
    "signals": Order("Closed", lambda each: each.card.all.signals),
    "win_rate": Order("Win rate", lambda each: each.card.all.win_rate),
    "average_r": Order("Average result", lambda each: each.card.all.expectancy_r),
    "total_r": Order("Total result", lambda each: of_results(each, each.card.all.total_r)),
    "drawdown": Order(
        "Deepest drawdown",
        lambda each: of_results(each, each.card.drawdown.deepest_r),
        is_highest_first=False,
    ),
    "cancelled": Order("Cancelled", lambda each: each.cancelled, is_highest_first=False),
    "since": Order("Publishes since", lambda each: each.since, is_highest_first=False),
}
FIRST_ORDER = "average_r"


class Ranking(NamedTuple):
    ranked: list[PublisherStanding]
    too_few: list[PublisherStanding]


def rank(standings: Iterable[PublisherStanding], order: str, *, reverse: bool = False) -> Ranking:
    ordered = in_order(standings, ORDERS[order], reverse=reverse)
    return Ranking(
        [each for each in ordered if not each.card.too_few],
        [each for each in ordered if each.card.too_few],
    )


def in_order(
    standings: Iterable[PublisherStanding], order: Order, *, reverse: bool
) -> list[PublisherStanding]:
    """Equals in the order of their names; who has no value comes last either way."""
    found = sorted(standings, key=lambda each: each.publisher.name.casefold())
    known = [each for each in found if order.value(each) is not None]
    known.sort(key=order.value, reverse=order.is_highest_first != reverse)
    return known + [each for each in found if order.value(each) is None]
