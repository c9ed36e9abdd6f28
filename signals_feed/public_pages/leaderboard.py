"""/publishers: everybody who ever published, by how sure it is that it was not luck."""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from core.contract.errors import Overloaded, page_or_body
from signals_feed.checked import MOST_CHECKED
from signals_feed.marks import Mark
from signals_feed.publishers import equity
from signals_feed.publishers.episodes import ENOUGH
from signals_feed.publishers.purses import PROVEN, STANDS
from signals_feed.publishers.record import ListName
from signals_feed.publishers.standings import (
    FIRST_ORDER,
    ORDERS,
    QUIET,
    PublisherStanding,
    rank,
    recent_standings,
)
from signals_feed.publishers.stored_events import DEMONSTRATION, PUSHED, VENUE

# A line of the table is about a hundred pixels wide.
MOST_POINTS = 40


class SortHeading(NamedTuple):
    title: str
    query: str
    """Orders by this column; by the other end of it if it is the order already."""
    sorted: str
    """As `aria-sort` has it; empty for every other column."""


TITLES: dict[ListName, str] = {
    VENUE: "Filled at a venue’s prices",
    PUSHED: "Filled at prices recorded here",
    DEMONSTRATION: "Demonstration, at made-up or replayed prices",
}


class LeaderboardRow(NamedTuple):
    place: int | None
    """None for those who are not told apart from luck, or not ranked."""
    standing: PublisherStanding
    picture: equity.EquityPicture | None


class Board(NamedTuple):
    name: ListName
    title: str
    ranked: list[LeaderboardRow]
    luck: list[LeaderboardRow]
    unranked: list[LeaderboardRow]


@require_safe
def leaderboard(request: HttpRequest) -> HttpResponse:
    order, is_reversed = read_order(request.GET.get("sort", ""))
    try:
        found = recent_standings()
    except Overloaded as refusal:
        return page_or_body(request, refusal)
    context = {
        "headings": {name: heading(name, order, is_reversed=is_reversed) for name in ORDERS},
        "boards": [
            board(name, standings, order, is_reversed=is_reversed)
            for name, standings in found.items()
            if standings
        ],
        "unjudged": sum(each.card.unjudged for each in chain.from_iterable(found.values())),
        "enough": ENOUGH,
        "proven": PROVEN,
        "stands": STANDS,
        "quiet_days": QUIET.days,
        "most_checked": MOST_CHECKED,
        "marks": list(Mark),
        "width": equity.WIDTH,
        "height": equity.HEIGHT,
    }
    return render(request, "signals/publishers/leaderboard.html", context)


def board(name: ListName, standings: list[PublisherStanding], order: str, *, is_reversed: bool) -> Board:
    # However the table is sorted, the first place is that of the best.
    best_first = rank(standings, FIRST_ORDER).ranked
    places = {each.publisher.user_id: place for place, each in enumerate(best_first, start=1)}
    groups = rank(standings, order, reverse=is_reversed)
    return Board(name, TITLES[name], *([row(places, each) for each in group] for group in groups))


def read_order(wanted: str) -> tuple[str, bool]:
    """`-` before the name turns the order round; anything unknown is the first order."""
    name = wanted.removeprefix("-")
    return (name, wanted.startswith("-")) if name in ORDERS else (FIRST_ORDER, False)


def heading(name: str, order: str, *, is_reversed: bool) -> SortHeading:
    title, _, is_highest_first = ORDERS[name]
    if name != order:
        return SortHeading(title, f"?sort={name}", "")
    is_descending = is_highest_first != is_reversed
    query = f"?sort={name}" if is_reversed else f"?sort=-{name}"
    return SortHeading(title, query, "descending" if is_descending else "ascending")


def row(places: dict[int, int], standing: PublisherStanding) -> LeaderboardRow:
    points = equity.thinned(standing.card.figures.equity.points, MOST_POINTS)
    place = places.get(standing.publisher.user_id)
    return LeaderboardRow(place, standing, equity.draw(points) if points else None)
