"""What was used in a while, as plain numbers, and how it is drawn. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

MINUTE_S, DAY_S = 60, 86_400
HEIGHT = 100


class Spent(NamedTuple):
    requests: int = 0
    streams: int = 0

    def more(self, other: Spent) -> Spent:
        return Spent(self.requests + other.requests, self.streams + other.streams)


def by_day(spent: Mapping[tuple[int, int], Spent]) -> dict[tuple[int, int], Spent]:
    """From what accounts used by minute."""
    days: dict[tuple[int, int], Spent] = {}
    for (account, at), used in spent.items():
        day = account, at // DAY_S * DAY_S
        days[day] = days.get(day, Spent()).more(used)
    return days


class Bars(NamedTuple):
    """A bar for each value, one unit wide, in a drawing of this width and HEIGHT."""

    width: int
    path: str
    highest: int
    total: int


def bars(values: Sequence[int]) -> Bars:
    highest = max(values, default=0)
    path = "".join(
        f"M{place + 0.5} {HEIGHT}V{HEIGHT - value * HEIGHT / highest:.1f}"
        for place, value in enumerate(values)
        if value
    )
    return Bars(len(values), path, highest, sum(values))
