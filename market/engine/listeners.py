"""Who follows the engine in its own process, and keeps what it made of it together with the engine's own
state."""

from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol

from market.prices.records import AnyRecord, Tick


class EngineStart(NamedTuple):
    epoch: Callable[[], str]
    """Of the numbering, which may begin anew."""
    hold: Callable[[], None]
    """Within a transaction: raises LeaseLost unless this engine is the one that writes, and keeps it so."""
    tail: list[AnyRecord]
    """What another engine decided and had not written yet: heard first."""


class SeriesEnding(NamedTuple):
    """A series that has had its last tick."""

    symbol: str
    last: Tick | None
    seq: int
    source: str
    next_source: str


class EngineListener(Protocol):
    async def begin(self, start: EngineStart) -> None:
        """The engine knows again what the database holds; nothing has come since, and nothing is written or
        comes before this returns."""

    async def stored(self, symbols: Collection[str]) -> None:
        """Minutes of these instruments were written of which nobody was sent a tick. Nothing has come since
        the beginning. Where this fails it judges them by itself, later."""

    def hear(self, records: list[AnyRecord]) -> None:
        """Everything that the engine decides, before anybody else hears of it. It may neither wait nor
        raise."""

    def notes(self, *, is_behind: bool) -> Callable[[], None]:
        """Called as the engine's state is about to be written, and the result within that transaction: what
        it must know of all it has heard so far, if another is to go on from there. `is_behind` where it may
        still be told of minutes that were `stored`."""

    async def series_ends(self, ending: SeriesEnding) -> Callable[[], None]:
        """The prices of an instrument are of another kind from now on. The result is called within the
        transaction that says so in the database, and may be called again if that fails."""

    async def end(self) -> None: ...
