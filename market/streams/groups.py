"""Who gets the same frames."""

from __future__ import annotations

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

    __slots__ = ("audiences", "due", "more", "row", "seats", "wrote_at")

    def __init__(self, audiences: frozenset[Audience]) -> None:
        self.audiences = audiences
        self.seats: dict[Seat, None] = {}
        self.due: bytes | None = None
        """The first frame that is not written yet; often it is the only one, and a list would lie elsewhere
        in the memory, which costs more than all that is done with it."""
        self.more: list[bytes] | None = None
        self.wrote_at = 0.0
        self.row: tuple[Seat, ...] = ()
        """Who gets frames, if it was made since the last change. It stays what it is while somebody goes
        through it, whoever comes and goes."""

    def make_row(self) -> tuple[Seat, ...]:
        self.row = tuple(seat for seat in self.seats if not seat.is_conflating)
        return self.row

    def renew(self) -> None:
        self.row = ()

    def add(self, seat: Seat) -> None:
        self.seats[seat] = None
        self.row = ()

    def remove(self, seat: Seat) -> None:
        del self.seats[seat]
        self.row = ()
