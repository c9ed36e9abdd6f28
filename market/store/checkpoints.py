"""Checkpoints: where each instrument was when the database was last written, with the order flow of its
minutes."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db import DataError, IntegrityError, connection, transaction
from django.db.models import Exists, FloatField, OuterRef, Subquery
from django.db.models.functions import Cast
from msgspec import to_builtins

from core.plain_json import encode
from core.times import epoch_ms, moment
from instruments.facts import is_simulated
from instruments.models import Instrument
from market.models import AbsorptionWindows, Candle, FormerQuote, FormingMinute, LastQuote, OrderFlowMinute
from market.prices.candles import PriceBar
from market.prices.order_flow import FlowState, MinuteFlow
from market.prices.records import JournalPosition, Tick

from .candle_rows import FLOATS, PRICES, CandleToWrite, candle_of, without_sources, write_candles
from .databases import Upsert
from .lease import Lease


def decimal_text(value: float) -> str:
    """With the eight decimals that the columns have."""
    return f"{value:.8f}"


def time_text(time_ms: int) -> str:
    return str(connection.ops.adapt_datetimefield_value(moment(time_ms)))


# The order flow of closed minutes, to and from the database.
VOLUMES = ("bid_volume", "ask_volume", "cumulative_delta")
PUT = Upsert(
    OrderFlowMinute, *("instrument_id", "simulated", "opened_at"), *VOLUMES, "absorptions", key_columns=3
)

VOLUMES_AS_FLOATS = {f"{name}_": Cast(name, FloatField()) for name in VOLUMES}


class FlowToWrite(NamedTuple):
    instrument_id: int
    simulated: bool
    minute: MinuteFlow


def write_flows(flows: Sequence[FlowToWrite]) -> None:
    """Insert, or replace what is there: writing the same minute twice changes nothing."""
    # One statement cannot touch a row twice.
    last = {(flow.instrument_id, flow.simulated, flow.minute.opened_ms): flow.minute for flow in flows}
    at = {opened_ms: time_text(opened_ms) for opened_ms in {key[2] for key in last}}
    PUT.put(
        (
            instrument_id,
            simulated,
            at[opened_ms],
            *[decimal_text(getattr(minute, name)) for name in VOLUMES],
            minute.absorptions,
        )
        for (instrument_id, simulated, opened_ms), minute in last.items()
    )


def read_flows(
    instrument_id: int,
    limit: int,
    *,
    start_ms: int | None = None,
    end_ms: int | None = None,
    withheld: Sequence[str] = (),
) -> list[MinuteFlow]:
    """Those of the present kind between two moments, oldest first: the first ones from the start on, or
    without a start the last ones. What came from `withheld` sources is left out."""
    kind = LastQuote.objects.filter(pk=instrument_id).values("simulated")
    flows = OrderFlowMinute.objects.filter(instrument=instrument_id, simulated=Subquery(kind))
    if start_ms is not None:
        flows = flows.filter(opened_at__gte=moment(start_ms))
    if end_ms is not None:
        flows = flows.filter(opened_at__lt=moment(end_ms))
    if withheld:
        # They keep no sources, and their candles do, which are kept as long.
        key = {name: OuterRef(name) for name in ("instrument", "simulated", "opened_at")}
        flows = flows.filter(Exists(without_sources(Candle.objects.filter(timeframe="1m", **key), withheld)))
    columns = "opened_at", *VOLUMES_AS_FLOATS, "absorptions"
    rows = flows.annotate(**VOLUMES_AS_FLOATS).values_list(*columns)
    found = rows.order_by("-opened_at" if start_ms is None else "opened_at")[:limit]
    minutes = [MinuteFlow(epoch_ms(at), *values) for at, *values in found]
    return minutes[::-1] if start_ms is None else minutes


logger = logging.getLogger(__name__)
PUT_MINUTES = Upsert(FormingMinute, "instrument_id", "opened_at", "source", "partial", *PRICES)
PUT_WINDOWS = Upsert(AbsorptionWindows, "instrument_id", "volumes")
PUT_QUOTES = Upsert(
    LastQuote,
    *("instrument_id", "bid", "ask", "quoted_at", "seq", "flow_seq", "flow_state", "source_seqs"),
    *("simulated", "source", "candle_seqs", "unsettled_ms"),
)


class Checkpoint(NamedTuple):
    """Where an instrument was when the store was last written."""

    last: Tick | None
    """None while its prices are of a kind that has not been quoted."""
    minute: PriceBar | None
    seq: int = 0
    flow_seq: int = 0
    flow_state: Any = None
    source_seqs: Mapping[str, int] = {}
    simulated: bool = False
    source: str = ""
    """The feed that sent the last tick."""
    kind_since_ms: int | None = None
    """Since when its prices are of their kind; None: always."""
    candle_seqs: Mapping[str, int] = {}
    """The last number of the closed candles of each timeframe."""
    unsettled_ms: int = 0
    """How long its prices were not settled, in all."""
    windows: Sequence[tuple[int, int]] | None = None
    """The volumes that absorption is compared with; None if they are stored as they are."""

    @property
    def awaits_first(self) -> bool:
        """Its series began, and no price of it has come: the last one, if any, is of long before."""
        since_ms = self.kind_since_ms
        return since_ms is not None and (self.last is None or self.last.time_ms < since_ms)


def write(
    rows: list[CandleToWrite],
    checkpoints: dict[int, Checkpoint],
    lease: Lease,
    position: JournalPosition,
    notes: Sequence[Callable[[], None]] = (),
    flows: Sequence[FlowToWrite] = (),
) -> None:
    """Candles, order flow, checkpoints and the notes of listeners in one transaction, as long as the lease is
    ours."""
    try:
        with transaction.atomic():
            _begin(lease, position, notes)
            _put(rows, checkpoints, flows)
    except (IntegrityError, DataError):
        # What the database will never take, say candles of a deleted instrument, would hold up the rest.
        with transaction.atomic():
            _begin(lease, position, notes)
            _put_each(rows, checkpoints, flows)


def _begin(lease: Lease, position: JournalPosition, notes: Sequence[Callable[[], None]]) -> None:
    # First, so that two writers wait here and not for each other's candles.
    lease.beat(position)
    for note in notes:
        note()


def _put_each(
    rows: list[CandleToWrite], checkpoints: dict[int, Checkpoint], flows: Sequence[FlowToWrite]
) -> None:
    """All in the transaction that says up to where is written: a kill between two would lose the second."""
    wanted = {row[0] for row in rows} | checkpoints.keys()
    # A missing key would make the whole transaction fail at its end, so the rows are locked against deletion.
    there = Instrument.objects.select_for_update(no_key=True).filter(pk__in=wanted).order_by("pk")
    known = set(there.values_list("pk", flat=True))
    for instrument_id in sorted(wanted):
        own = [row for row in rows if row[0] == instrument_id]
        try:
            if instrument_id not in known:
                raise IntegrityError("there is no such instrument")
            with transaction.atomic():
                own_checkpoints = {i: c for i, c in checkpoints.items() if i == instrument_id}
                _put(own, own_checkpoints, [flow for flow in flows if flow.instrument_id == instrument_id])
        except (IntegrityError, DataError) as error:
            logger.error("%d candles of instrument %d were refused: %s", len(own), instrument_id, error)


def _put(rows: list[CandleToWrite], checkpoints: dict[int, Checkpoint], flows: Sequence[FlowToWrite]) -> None:
    write_candles(rows)
    write_flows(flows)
    write_quotes(checkpoints.items())
    PUT_MINUTES.put(
        (
            instrument_id,
            time_text(minute.opened_ms),
            minute.source,
            minute.partial,
            *[decimal_text(getattr(minute, name)) for name in PRICES],
        )
        for instrument_id, checkpoint in checkpoints.items()
        if (minute := checkpoint.minute) is not None
    )
    PUT_WINDOWS.put(
        (instrument_id, encode(checkpoint.windows).decode())
        for instrument_id, checkpoint in checkpoints.items()
        if checkpoint.windows is not None
    )


def write_quote(instrument_id: int, tick: Tick, source: str = "", flow: FlowState | None = None) -> None:
    """The last quote alone, and where the order flow stands if that is known: the numbers given to an
    instrument's ticks stay."""
    quote = {**_quote(tick), "simulated": is_simulated(source), "source": source}
    if flow is not None:
        quote["flow_state"] = to_builtins(flow)
    LastQuote.objects.update_or_create(instrument_id=instrument_id, defaults=quote)


def write_quotes(checkpoints: Iterable[tuple[int, Checkpoint]]) -> None:
    PUT_QUOTES.put(
        (
            instrument_id,
            *_quote_text(checkpoint.last),
            checkpoint.seq,
            checkpoint.flow_seq,
            None if checkpoint.flow_state is None else encode(checkpoint.flow_state).decode(),
            encode(dict(checkpoint.source_seqs)).decode(),
            checkpoint.simulated,
            checkpoint.source,
            encode(dict(checkpoint.candle_seqs)).decode(),
            checkpoint.unsettled_ms,
        )
        for instrument_id, checkpoint in checkpoints
    )


def read_checkpoints() -> dict[int, Checkpoint]:
    """By instrument id."""
    columns = "pk", "opened_at", *FLOATS, "source", "partial"
    minutes = FormingMinute.objects.annotate(**FLOATS).values_list(*columns)
    forming = {instrument_id: candle_of(values) for instrument_id, *values in minutes}
    windows = dict(AbsorptionWindows.objects.values_list("pk", "volumes"))
    quotes = LastQuote.objects.select_related("instrument")
    return {
        row.pk: Checkpoint(
            tick_of(row, row.instrument.symbol),
            forming.get(row.pk),
            row.seq,
            row.flow_seq,
            row.flow_state,
            row.source_seqs,
            row.simulated,
            row.source,
            None if row.kind_since is None else epoch_ms(row.kind_since),
            row.candle_seqs or {},
            row.unsettled_ms,
            windows.get(row.pk),
        )
        for row in quotes
    }


def tick_of(row: LastQuote | FormerQuote, symbol: str) -> Tick | None:
    if row.bid is None or row.ask is None or row.quoted_at is None:
        return None
    return Tick(symbol, float(row.bid), float(row.ask), epoch_ms(row.quoted_at))


def _quote_text(tick: Tick | None) -> tuple[str | None, str | None, str | None]:
    if tick is None:
        return None, None, None
    return decimal_text(tick.bid), decimal_text(tick.ask), time_text(tick.time_ms)


def _quote(tick: Tick | None) -> dict[str, Any]:
    if tick is None:
        return {"bid": None, "ask": None, "quoted_at": None}
    return {"bid": tick.bid, "ask": tick.ask, "quoted_at": moment(tick.time_ms)}
