"""The engine's state, second by second: every process receives it, for metrics and the back office."""

import msgspec

from core.steady_clock import SteadyClock
from market.prices.candles import DAY_MS
from market.prices.order_flow import UNITS
from market.prices.records import StatusRecord

from .admission import MOST_LAG_MS, FeedState
from .engine import Engine
from .instrument_state import InstrumentState


class FeedStatus(msgspec.Struct, frozen=True):
    name: str
    state: str
    """live, silent or lost."""
    since_ms: int
    why: str
    heard_ms: int
    lag_ms: int
    ticks: int
    refused: dict[str, int]
    complaints: tuple[str, ...] = ()
    """What staff should do something about: names that a venue does not have."""


class InstrumentStatus(msgspec.Struct, frozen=True):
    symbol: str
    feed: str
    feeds: tuple[str, ...]
    switched_ms: int | None
    switches: int
    ticks: int
    cumulative_delta: float = 0.0
    """Since 00:00 UTC."""
    outliers: int = 0
    """Ticks refused as too far from the last price, since the engine started."""
    outlier_ms: int = 0
    outlier_price: float = 0.0
    """The mid of the last of them."""


class EngineStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    at_ms: int = 0
    writer: str = ""
    """Empty while it may not write, because another engine does."""
    epoch: str = ""
    feeds: list[FeedStatus] = []
    instruments: list[InstrumentStatus] = []
    waiting_rows: int = 0
    clock_off_ms: int = 0
    """The market's time from the machine's, which was set."""
    clock_steps: int = 0
    unsettled: tuple[str, ...] = ()
    """The symbols whose prices are not settled: a price beyond them was refused, and may yet be confirmed."""
    lagging: tuple[str, ...] = ()
    """The symbols whose prices come too late to be filled at."""
    has_hole: bool = False
    """The journal of an engine within its process lacks something that the database lacks too."""
    bus_fault: str = ""
    """Why Redis may not keep what the engine says: `full` or `away`."""
    ticks_fault: str = ""
    """Why the last ticks are not kept for REST."""


# A feed without messages for this long is silent, even if its connection is open.
SILENT_MS = 15_000


def status_of(
    engine: Engine,
    at_ms: int,
    writer: str,
    epoch: str,
    clock: SteadyClock | None = None,
    has_hole: bool = False,
    bus_fault: str = "",
    ticks_fault: str = "",
) -> EngineStatus:
    return EngineStatus(
        at_ms=at_ms,
        writer=writer,
        epoch=epoch,
        feeds=[_feed(name, feed_state, at_ms) for name, feed_state in sorted(engine.feed_states.items())],
        # A day's order flow ends as its last minute does.
        instruments=[
            _instrument(state, at_ms - engine.grace_ms) for _, state in sorted(engine.instruments.items())
        ],
        waiting_rows=len(engine.rows),
        clock_off_ms=0 if clock is None else clock.off_ms,
        clock_steps=0 if clock is None else clock.steps,
        unsettled=tuple(sorted(engine.unsettled)),
        lagging=_lagging(engine),
        has_hole=has_hole,
        bus_fault=bus_fault,
        ticks_fault=ticks_fault,
    )


def _lagging(engine: Engine) -> tuple[str, ...]:
    late = {
        name
        for name, feed_state in engine.feed_states.items()
        if feed_state.lags.p99_ms(feed_state.ticks) > MOST_LAG_MS
    }
    found = (symbol for symbol, state in engine.instruments.items() if state.origin in late)
    return tuple(sorted(found)) if late else ()


encode_status = msgspec.json.Encoder().encode
read_status = msgspec.json.Decoder(EngineStatus).decode


def status_record(status: EngineStatus) -> StatusRecord:
    return StatusRecord("", encode_status(status))


# Of the name of the engine's process, so that a sign of life stays below 100 bytes.
NAME_LENGTH = 48


def sign_of_life(status: EngineStatus) -> StatusRecord:
    """Without an epoch, as nothing else is: all of the status stands under a key."""
    return status_record(EngineStatus(at_ms=status.at_ms, writer=status.writer[:NAME_LENGTH]))


def _feed(name: str, feed_state: FeedState, at_ms: int) -> FeedStatus:
    if feed_state.lost_ms is not None:
        state, since_ms = "lost", feed_state.lost_ms
    elif at_ms - feed_state.heard_ms > SILENT_MS:
        state, since_ms = "silent", feed_state.heard_ms
    else:
        state, since_ms = "live", feed_state.since_ms or at_ms
    why = feed_state.why if state == "lost" else ""
    counted = feed_state.ticks, dict(feed_state.refused), tuple(feed_state.complaints)
    return FeedStatus(name, state, since_ms, why, feed_state.heard_ms, feed_state.lag_ms, *counted)


def _instrument(state: InstrumentState, until_ms: int) -> InstrumentStatus:
    choice, flow = state.choice, state.flow.state()
    delta = flow.units / UNITS if flow.day >= until_ms // DAY_MS else 0.0
    switched = choice.switched_ms, choice.switches
    far = state.outliers
    return InstrumentStatus(
        state.facts.symbol,
        choice.feed,
        choice.feeds,
        *switched,
        state.seq,
        delta,
        outliers=far.refused,
        outlier_ms=far.refused_ms,
        outlier_price=far.last_price,
    )
