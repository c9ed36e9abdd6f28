"""The order flow of closed minutes, to and from the database, past the ORM."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import connection

from core.times import moment
from market.models import LastQuote, OrderFlowMinute
from market.prices.order_flow import MinuteFlow

from .candle_rows import OPENED_MS
from .candle_rows import TABLE as CANDLES
from .stored_sources import leave_out
from .upserts import Upsert, decimal_text, time_text

VOLUMES = ("bid_volume", "ask_volume", "cumulative_delta")
PUT = Upsert(
    OrderFlowMinute, *("instrument_id", "simulated", "opened_at"), *VOLUMES, "absorptions", key_columns=3
)

# Of the kind that the instrument's prices are of now.
FLOWS = OrderFlowMinute._meta.db_table
READ_AS = ", ".join(f"CAST({name} AS double precision)" for name in VOLUMES)
READ = (
    f"SELECT {{opened_ms}}, {READ_AS}, absorptions "  # noqa: S608 - names of our own
    f"FROM {FLOWS} WHERE instrument_id = %s "
    f"AND simulated = (SELECT simulated FROM {LastQuote._meta.db_table} WHERE instrument_id = %s)"
)

# They keep no sources, and their candles do, which are kept as long.
OF_CANDLES = (
    f"SELECT 1 FROM {CANDLES} AS candle WHERE candle.instrument_id = {FLOWS}.instrument_id "  # noqa: S608 - names of our own
    f"AND candle.simulated = {FLOWS}.simulated AND candle.timeframe = '1m' "
    f"AND candle.opened_at = {FLOWS}.opened_at"
)


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
    conditions, parameters = "", list[Any]([instrument_id, instrument_id])
    for compared, time_ms in ((">=", start_ms), ("<", end_ms)):
        if time_ms is not None:
            conditions += f" AND opened_at {compared} %s"
            parameters.append(connection.ops.adapt_datetimefield_value(moment(time_ms)))
    if withheld:
        allowed, sources = leave_out(withheld)
        conditions += f" AND EXISTS ({OF_CANDLES}{allowed})"
        parameters += sources
    order = "DESC" if start_ms is None else "ASC"
    read = READ.format(opened_ms=OPENED_MS[connection.vendor])
    with connection.cursor() as cursor:
        cursor.execute(f"{read}{conditions} ORDER BY opened_at {order} LIMIT %s", [*parameters, limit])
        rows = [MinuteFlow(*row) for row in cursor.fetchall()]
    return rows[::-1] if start_ms is None else rows
