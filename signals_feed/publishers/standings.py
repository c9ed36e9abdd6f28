"""Everybody who ever published, in lists by who made the prices, each by what is proved."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any, NamedTuple

from django.db.models import Count, Max, Min, QuerySet

from accounts.models import User
from accounts.rights import MAY_PUBLISH
from core import clock
from core.background import BackgroundLoop
from core.cached import Cached, shared_work
from core.database import UNANSWERED
from core.fault_log import LastingFault
from core.threads import in_thread
from core.times import moment
from signals_feed.models import Signal

from .lookup import ACTIVE, CLOSED, WAIT_S, WAITING, PresentPrices, Publisher, scorecards
from .purses import Standing
from .record import LISTS, ListName, Scorecard
from .stored_events import DEMONSTRATION, PUSHED
from .verdicts import Judging, verdicts

logger = logging.getLogger(__name__)
# The only backend with permissions.
BACKEND = "django.contrib.auth.backends.ModelBackend"
QUIET = timedelta(days=90)


def is_quiet(publisher: Publisher) -> bool:
    """Whether the record is too old to be ranked."""
    return publisher.last_at < moment(clock.now_ms()) - QUIET


class PublisherStanding(NamedTuple):
    """In one list."""

    publisher: Publisher
    card: Scorecard
    since: datetime
    """When the first signal was published."""
    may_publish: bool
    rank: Standing | None
    """None if no signal was published by rules that can be ranked."""

    @property
    def is_told_from_luck(self) -> bool | None:
        """None if it is not ranked."""
        if self.rank is None or is_quiet(self.publisher):
            return None
        return self.rank.is_told_from_luck


def may_publish() -> QuerySet[User]:
    return User.objects.with_perm(MAY_PUBLISH, backend=BACKEND)


Standings = dict[ListName, list[PublisherStanding]]


def read_standings() -> Standings:
    """Of every publisher, also of those who stopped or whose account is gone: their signals stay. A publisher
    with signals of several kinds is in several lists."""
    counts = {
        name: Count("pk", filter=which)
        for name, which in (("active", ACTIVE), ("waiting", WAITING), ("closed", CLOSED))
    }
    rows = (
        Signal.objects.order_by()
        .values_list("user_id", "user__username", "user__account__is_demo")
        .annotate(**counts, last=Max("published_at"), since=Min("published_at"))
    )
    allowed = set(may_publish().values_list("pk", flat=True))
    standings: Standings = {name: [] for name in LISTS}
    present, judging = PresentPrices(), Judging()
    for user_id, name, is_demo, *counted, since in rows:
        publisher = Publisher(user_id, name, bool(is_demo), *counted)
        card = scorecards.read(publisher, present, judging, patience_s=-1)
        home = DEMONSTRATION if publisher.is_demo else card.listed_in or PUSHED
        for listed in card.standings or (home,):
            standing = card.standings.get(listed)
            own = PublisherStanding(publisher, card, since, user_id in allowed, standing)
            standings[listed].append(own)
    return standings


# All that is open is counted at its present price, however much that is.
FRESH_S = 5.0
kept_standings: Cached[Standings] = Cached()


def recent_standings() -> Standings:
    """Raises Overloaded while they are read for the first time, which takes seconds."""
    with shared_work():
        return kept_standings.get(FRESH_S, lambda _: read_standings(), WAIT_S)


AGAIN_S = 5.0


async def read_ahead() -> None:
    """Everything that the first visitor would otherwise wait for, and once more when all of it is judged."""
    while True:
        standings = await in_thread(read_standings)
        if not any(each.card.unjudged for each in chain(*standings.values())):
            return
        await asyncio.sleep(AGAIN_S)
        # Reading takes seconds of the interpreter, and tells no more before they are judged.
        while verdicts.is_at_work:  # noqa: ASYNC110 - it is judged in pieces
            await asyncio.sleep(AGAIN_S)


reading_ahead = BackgroundLoop(
    "standings",
    read_ahead,
    fault=LastingFault(logger, "Publishers' records wait to be read"),
    broke="Publishers' records could not be read",
    passing=UNANSWERED,
    after=math.inf,
    again=AGAIN_S,
)


class Order(NamedTuple):
    title: str
    value: Callable[[PublisherStanding], Any]
    """None if there is nothing to compare yet."""
    is_highest_first: bool = True


def of_rank(each: PublisherStanding) -> tuple[float, float] | None:
    """Equals, and those whose record may be luck, by their evidence."""
    return None if each.rank is None else (each.rank.at_least_r or 0.0, each.rank.evidence)


def of_results(each: PublisherStanding, figure: Decimal) -> Decimal | None:
    """A sum over no results is 0, but no figure of theirs."""
    return figure if each.card.figures.all.episodes else None


ORDERS = {
    "name": Order("Publisher", lambda each: each.publisher.name.casefold(), is_highest_first=False),
    "at_least_r": Order("At least", of_rank),
    "episodes": Order("Episodes", lambda each: each.card.figures.all.episodes),
    "win_rate": Order("Win rate", lambda each: each.card.figures.all.win_rate),
    "average_r": Order("Average result", lambda each: each.card.figures.all.expectancy_r),
    "total_r": Order("Total result", lambda each: of_results(each, each.card.figures.all.total_r)),
    "drawdown": Order(
        "Deepest drawdown",
        lambda each: of_results(each, each.card.figures.drawdown.deepest_r),
        is_highest_first=False,
    ),
    "since": Order("Publishes since", lambda each: each.since, is_highest_first=False),
}
FIRST_ORDER = "at_least_r"


class Ranking(NamedTuple):
    ranked: list[PublisherStanding]
    luck: list[PublisherStanding]
    """Those whose record may be luck."""
    unranked: list[PublisherStanding]


def rank(standings: Iterable[PublisherStanding], order: str, *, reverse: bool = False) -> Ranking:
    ordered = in_order(standings, ORDERS[order], reverse=reverse)
    return Ranking(
        *([each for each in ordered if each.is_told_from_luck is which] for which in (True, False, None))
    )


def in_order(
    standings: Iterable[PublisherStanding], order: Order, *, reverse: bool
) -> list[PublisherStanding]:
    """Equals are in the order of their names; publishers without a value come last either way."""
    found = sorted(standings, key=lambda each: each.publisher.name.casefold())
    known = [each for each in found if order.value(each) is not None]
    known.sort(key=order.value, reverse=order.is_highest_first != reverse)
    return known + [each for each in found if order.value(each) is None]
