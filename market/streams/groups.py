"""Who gets the same frames."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from .connection import NO_DESCRIPTOR

if TYPE_CHECKING:
    from .seat import Seat


class Row:
    """Seats and where their frames go, side by side. It stays what it is while somebody goes through it,
    whoever comes and goes."""

    __slots__ = ("descriptors", "direct", "others")

    def __init__(self, direct: list[Seat], descriptors: array[int], others: list[Seat]) -> None:
        self.direct, self.descriptors = direct, descriptors
        self.others = others
        """Whose frames do not go straight to the kernel."""

    @classmethod
    def of(cls, seats: Collection[Seat]) -> Row:
        direct = [seat for seat in seats if seat.descriptor != NO_DESCRIPTOR]
        others = []
        if len(direct) < len(seats):
            others = [seat for seat in seats if seat.descriptor == NO_DESCRIPTOR and not seat.is_conflating]
        return cls(direct, array("i", [seat.descriptor for seat in direct]), others)

    @classmethod
    def joined(cls, rows: Sequence[Row]) -> Row:
        if len(rows) == 1:
            return rows[0]
        whole = cls([], array("i"), [])
        for row in rows:
            whole.direct += row.direct
            whole.descriptors += row.descriptors
            whole.others += row.others
        return whole

    @property
    def size(self) -> int:
        return len(self.direct) + len(self.others)


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
            self._row = Row.joined([group.row for group in self.groups])
        return self._row


class Group:
    """Seats with the very same subscriptions: what they are due is collected and joined once."""

    __slots__ = ("_row", "audiences", "descriptor", "due", "more", "seats", "wrote_at")

    def __init__(self, audiences: frozenset[Audience]) -> None:
        self.audiences = audiences
        self.seats: dict[Seat, None] = {}
        self.wrote_at = 0.0
        # Where thousands are due something, most of the time goes by in waiting for the memory: a list for
        # a single frame and a look at the seat for a single descriptor would each lie elsewhere.
        self.due = b""
        """The first frame that is not written yet; most often it is the only one."""
        self.more: list[bytes] | None = None
        self.renew()

    def renew(self) -> None:
        """Somebody came or went, or takes frames in another way."""
        self._row: Row | None = None
        self.descriptor = NO_DESCRIPTOR
        """Where frames go if that is one place, and known since the last change."""
        for audience in self.audiences:
            audience.renew()

    def has(self, variant: int) -> bool:
        return not variant or any(audience.variant & variant for audience in self.audiences)

    @property
    def row(self) -> Row:
        if self._row is None:
            self._row = Row.of(self.seats)
            if len(self._row.descriptors) == len(self.seats) == 1:
                self.descriptor = self._row.descriptors[0]
        return self._row

    def add(self, seat: Seat) -> None:
        self.seats[seat] = None
        self.renew()

    def remove(self, seat: Seat) -> None:
        del self.seats[seat]
        self.renew()
