"""/publishers: everybody who ever published, by the figures of their scorecards."""

from __future__ import annotations

from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from signals_feed.publishers import equity
from signals_feed.publishers.scorecards import ENOUGH
from signals_feed.publishers.standings import FIRST_ORDER, ORDERS, PublisherStanding, rank, read_standings

from .checked import MOST_OF_PUBLISHER

# A line of the table is about a hundred pixels wide.
MOST_POINTS = 40


class SortHeading(NamedTuple):
    title: str
    query: str
    """Orders by this column; by the other end of it if it is the order already."""
    sorted: str
    """As `aria-sort` has it; empty for every other column."""


class LeaderboardRow(NamedTuple):
    place: int | None
    """None for those with too few signals."""
    standing: PublisherStanding
    picture: equity.EquityPicture | None


@require_safe
def leaderboard(request: HttpRequest) -> HttpResponse:
    order, is_reversed = read_order(request.GET.get("sort", ""))
    standings = read_standings()
    ranking = rank(standings, order, reverse=is_reversed)
    # However the table is sorted, the first place is that of the best.
    best_first = rank(standings, FIRST_ORDER).ranked
    places = {each.publisher.user_id: place for place, each in enumerate(best_first, start=1)}
    context = {
        "headings": {name: heading(name, order, is_reversed=is_reversed) for name in ORDERS},
        "ranked": [row(places[each.publisher.user_id], each) for each in ranking.ranked],
        "too_few": [row(None, each) for each in ranking.too_few],
        "enough": ENOUGH,
        "most_checked": MOST_OF_PUBLISHER,
        "width": equity.WIDTH,
        "height": equity.HEIGHT,
    }
    return render(request, "signals/publishers/leaderboard.html", context)


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


def row(place: int | None, standing: PublisherStanding) -> LeaderboardRow:
    points = equity.thinned(standing.card.equity.points, MOST_POINTS)
    return LeaderboardRow(place, standing, equity.draw(points) if points else None)
