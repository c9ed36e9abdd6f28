"""How the whole market of this process is doing at one moment, for /metrics and the back office."""

from collections.abc import Iterable

import msgspec
from asgiref.sync import async_to_sync

from core import clock
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts
from market.prices.quotes import Quote

from . import runtime
from .engine.admission import is_of
from .engine.status import EngineStatus, FeedStatus, InstrumentStatus
from .prices.history import DayStatistics

# The engine reports each second; after this long without a report, it has ended or its reports do not arrive.
GONE_MS = 5_000


class InstrumentOverview(msgspec.Struct, frozen=True):
    facts: InstrumentFacts
    state: str
    """open, closed or stale."""
    quote: Quote | None
    age_ms: int | None
    day: DayStatistics | None
    status: InstrumentStatus | None
    """What the engine says of it; None until it has."""
    doubts: tuple[str, ...]
    """Why no signals can be published at its prices now: unsettled, lagging."""

    @property
    def is_on_fallback(self) -> bool:
        return self.status is not None and self.status.feed != self.status.feeds[0]


class Overview(msgspec.Struct, frozen=True):
    at_ms: int
    engine: EngineStatus
    feeds: list[FeedStatus]
    """Also those that an instrument names but that have sent nothing yet; their `heard_ms` is 0."""
    instruments: list[InstrumentOverview]

    @property
    def engine_age_ms(self) -> int | None:
        return max(0, self.at_ms - self.engine.at_ms) if self.engine.at_ms else None

    @property
    def is_running(self) -> bool:
        age_ms = self.engine_age_ms
        return age_ms is not None and age_ms <= GONE_MS


def overview() -> Overview:
    """From a thread. The prices belong to the event loop: there, and only there, they may be looked at."""
    return async_to_sync(_look)()


async def _look() -> Overview:
    at_ms, engine = clock.now_ms(), runtime.status()
    statuses = {instrument.symbol: instrument for instrument in engine.instruments}
    doubted = {"unsettled": engine.unsettled, "lagging": engine.lagging}
    instruments = []
    for facts in catalogue.active():
        doubts = tuple(word for word, symbols in doubted.items() if facts.symbol in symbols)
        instruments.append(_instrument(facts, statuses.get(facts.symbol), doubts, at_ms))
    return Overview(at_ms, engine, engine.feeds + _unheard(engine.feeds, instruments), instruments)


def _instrument(
    facts: InstrumentFacts, status: InstrumentStatus | None, doubts: tuple[str, ...], at_ms: int
) -> InstrumentOverview:
    prices, quote = runtime.prices, runtime.quote(facts.symbol)
    state = prices.quotes.state(facts, at_ms)
    history = prices.candles(facts)
    forming = history.builder.forming("1m")
    age_ms = None if quote is None else quote.age_ms(at_ms)
    day = history.day.statistics(at_ms, forming)
    return InstrumentOverview(facts, state, quote, age_ms, day, status, doubts)


def _unheard(heard: list[FeedStatus], instruments: Iterable[InstrumentOverview]) -> list[FeedStatus]:
    named = {feed for instrument in instruments if instrument.status for feed in instrument.status.feeds}
    missing = [name for name in sorted(named) if not any(is_of(feed.name, name) for feed in heard)]
    return [FeedStatus(name, "silent", 0, "", 0, 0, 0, {}) for name in missing]
