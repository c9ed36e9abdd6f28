"""Who gets the same frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .seat import Seat


class Audience:
    """Of one topic in one variant."""

    __slots__ = ("groups", "topic", "variant")

    def __init__(self, topic: str, variant: int) -> None:
        self.topic, self.variant = topic, variant
        self.groups: dict[Group, None] = {}


class Group:
    """Seats with the very same subscriptions: what they are due is collected and joined once."""

    __slots__ = ("audiences", "due", "more", "row", "seats", "write", "wrote_at")

    def __init__(self, audiences: frozenset[Audience]) -> None:
        self.audiences = audiences
        self.seats: dict[Seat, None] = {}
        self.wrote_at = 0.0
        # Where thousands are due something, most of the time goes by in waiting for the memory: a list for
        # a single frame and a look at the seat for a single write would each lie elsewhere.
        self.due: bytes | None = None
        """The first frame that is not written yet; most often it is the only one."""
        self.more: list[bytes] | None = None
        self.renew()

    def renew(self) -> None:
        """Somebody came or went, or takes frames in another way."""
        self.row: tuple[Seat, ...] = ()
        """Who gets frames, if it was made since the last change. It stays what it is while somebody goes
        through it, whoever comes and goes."""
        self.write: Callable[[bytes], object] | None = None
        """Where frames go if that is one place, and known since the last change."""

    def make_row(self) -> tuple[Seat, ...]:
        self.row = tuple(seat for seat in self.seats if not seat.is_conflating)
        if len(self.row) == len(self.seats) == 1:
            self.write = self.row[0].write
        return self.row

    def add(self, seat: Seat) -> None:
        self.seats[seat] = None
        self.renew()

    def remove(self, seat: Seat) -> None:
        del self.seats[seat]
        self.renew()
