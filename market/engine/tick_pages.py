"""Which ticks are wanted, and a page of them, as those who keep ticks find it."""

from collections.abc import Callable, Iterable, Iterator
from struct import Struct
from typing import NamedTuple

BODY = Struct("<qqddd")
"""The fields of a `KeptTick`."""


class KeptTick(NamedTuple):
    seq: int
    time_ms: int
    bid: float
    ask: float
    volume: float


class TickPlace(NamedTuple):
    """A tick in the order of all of its symbol."""

    epoch: str
    seq: int
    time_ms: int


class WantedTicks(NamedTuple):
    symbol: str
    start_ms: int
    end_ms: int
    """Excluded."""
    limit: int
    after: TickPlace | None
    """The last that was given."""
    may_be_given: Callable[[str], bool]
    """Whether ticks of this source may be passed on and are of the present kind."""


class FoundTicks(NamedTuple):
    epoch: str = ""
    """Of all ticks: those of the next epoch are not among them."""
    bodies: bytes = b""
    """The ticks, packed: many pages may be open."""
    has_more: bool = False
    oldest: TickPlace | None = None
    """Of all that are kept; what is older is elsewhere."""
    newest: TickPlace | None = None


def pack_ticks(ticks: Iterable[tuple[int, int, float, float, float]]) -> bytes:
    return b"".join(BODY.pack(*tick) for tick in ticks)


def unpack_ticks(bodies: bytes) -> Iterator[KeptTick]:
    return map(KeptTick._make, BODY.iter_unpack(bodies))
