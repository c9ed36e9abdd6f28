"""A signal's levels on one line, from the lowest to the highest price, as wide as the picture."""

from decimal import Decimal
from typing import NamedTuple

WIDTH, MARGIN = 1000, 20


class LevelsPicture(NamedTuple):
    """In units of the picture, from the left."""

    stop: int
    paid: int
    target: int
    close: int | None
    reached: tuple[int, int] | None
    """How far the exit side went while the signal was open."""

    @property
    def risk(self) -> tuple[int, int]:
        return min(self.stop, self.paid), abs(self.stop - self.paid)

    @property
    def reward(self) -> tuple[int, int]:
        return min(self.target, self.paid), abs(self.target - self.paid)


def draw_levels(
    stop: Decimal, paid: Decimal, target: Decimal, close: Decimal | None, extremes: list[Decimal]
) -> LevelsPicture:
    known = [stop, paid, target, *extremes, *([] if close is None else [close])]
    low, high = min(known), max(known)
    # The levels of a signal differ, so this is never nothing.
    scale = Decimal(WIDTH - 2 * MARGIN) / (high - low)

    def x(price: Decimal) -> int:
        return round(MARGIN + (price - low) * scale)

    reached = (x(min(extremes)), x(max(extremes))) if extremes else None
    return LevelsPicture(x(stop), x(paid), x(target), None if close is None else x(close), reached)
