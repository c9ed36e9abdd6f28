"""Who gets the same frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .seat import Seat

Write = Callable[[bytes], object]


class Row:
    """Seats and where their frames go, side by side. It stays what it is while somebody goes through it,
    whoever comes and goes."""

    __slots__ = ("seats", "writes")

    def __init__(self, seats: Iterable[Seat]) -> None:
        self.seats = tuple(seat for seat in seats if not seat.is_conflating)
        self.writes: tuple[Write, ...] = tuple(seat.write for seat in self.seats)


class Audience:
    """Of one topic in one variant."""

    __slots__ = ("_row", "groups", "topic", "variant", "wrote_at")

    def __init__(self, topic: str, variant: int) -> None:
        self.topic, self.variant = topic, variant
        self.groups: dict[Group, None] = {}
        self.wrote_at = 0.0
        """When it was last due something while nothing else was."""
        self.renew()

    def renew(self) -> None:
        self._row: Row | None = None

    @property
    def row(self) -> Row:
        if self._row is None:
            self._row = Row(seat for group in self.groups for seat in group.seats)
        return self._row


class Group:
    """Seats with the very same subscriptions: what they are due is collected and joined once."""

    __slots__ = ("_row", "audiences", "due", "more", "seats", "write", "wrote_at")

    def __init__(self, audiences: frozenset[Audience]) -> None:
        self.audiences = audiences
        self.seats: dict[Seat, None] = {}
        self.wrote_at = 0.0
        # Where thousands are due something, most of the time goes by in waiting for the memory: a list for
        # a single frame and a look at the seat for a single write would each lie elsewhere.
        self.due = b""
        """The first frame that is not written yet; most often it is the only one."""
        self.more: list[bytes] | None = None
        self.renew()

    def renew(self) -> None:
        """Somebody came or went, or takes frames in another way."""
        self._row: Row | None = None
        self.write: Write | None = None
        """Where frames go if that is one place, and known since the last change."""
        for audience in self.audiences:
            audience.renew()

    @property
    def row(self) -> Row:
        if self._row is None:
            self._row = Row(self.seats)
            if len(self._row.writes) == len(self.seats) == 1:
                self.write = self._row.writes[0]
        return self._row

    def add(self, seat: Seat) -> None:
        self.seats[seat] = None
        self.renew()

    def remove(self, seat: Seat) -> None:
        del self.seats[seat]
        self.renew()
