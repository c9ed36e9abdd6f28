"""Listeners follow the engine in its own process, and write their results with the engine's state."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import NamedTuple, Protocol

from market.prices.records import AnyRecord, Tick


class SymbolStanding(NamedTuple):
    """How far the database knows an instrument when an engine begins."""

    seq: int
    """The last number that one of its ticks got."""
    closed_until_ms: int
    """When its last closed minute ended; 0 before the first."""


class FillTerms(NamedTuple):
    """What a fill that is asked for now has to wait for."""

    wait_ms: int
    """No tick that is accepted before that fills it."""
    settled: bool = True
    unsettled_ms: int = 0
    """As the ticks say it."""
    ahead_ms: int | None = 0
    """How far the engine's clock is ahead of the venue's; None while unknown."""


class EngineStart(NamedTuple):
    epoch: Callable[[], str]
    """Of the numbering, which may restart."""
    hold: Callable[[], None]
    """Within a transaction: raises LeaseLost unless this engine is the one that writes, and keeps it so."""
    tail: list[AnyRecord]
    """What another engine decided and had not written yet: it comes first."""
    fill_terms: Callable[[str], FillTerms]
    """Of a symbol, now."""
    restart_numbering: Callable[[], Awaitable[None]]
    """From now on ticks are numbered in another epoch. Only while nothing comes."""
    standings: Mapping[str, SymbolStanding] = {}
    """By symbol, without the tail. What had higher numbers is in the tail, or the numbers are given again."""


class SeriesEnding(NamedTuple):
    """A series that has had its last tick."""

    symbol: str
    last: Tick | None
    seq: int
    source: str
    next_source: str


class EngineListener(Protocol):
    async def begin(self, start: EngineStart) -> None:
        """The engine has loaded what the database holds; nothing comes or is written before this returns."""

    async def stored(self, symbols: Collection[str]) -> None:
        """Minutes were written whose ticks were never sent; no tick has come since the start. If this fails,
        the listener judges them later."""

    def hear(self, records: list[AnyRecord]) -> None:
        """All that the engine decides, before any client learns of it. It may neither wait nor raise."""

    def notes(self, *, is_behind: bool) -> Callable[[], None]:
        """Called before the engine's state is written, and the result within that transaction: it keeps what
        another needs to go on from there. `is_behind` while minutes may still be `stored`."""

    async def series_ends(self, ending: SeriesEnding) -> Callable[[], None]:
        """An instrument's prices are of another kind from now on. The result is called within the transaction
        that says so in the database, and may be called again if that fails."""

    async def end(self) -> None: ...
