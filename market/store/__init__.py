"""What the database holds of the market: candles, checkpoints, and which process writes them."""

from .candle_rows import (
    CandleToWrite,
    prepared_batches,
    read_minutes_since,
    stored_sources,
    write_candles,
    write_prepared,
)
from .checkpoints import FlowToWrite, read_flows, tick_of, write_flows, write_quote
from .databases import market_tables
from .lease import LeaseLost, clock_of_writer_s, has_writer, is_alive, own_name, rules_of_writer
from .series import change_kind, hold_series, lock_series, present_kind, wanted_kind

__all__ = [
    "LeaseLost",
    "CandleToWrite",
    "FlowToWrite",
    "change_kind",
    "clock_of_writer_s",
    "has_writer",
    "hold_series",
    "is_alive",
    "lock_series",
    "market_tables",
    "own_name",
    "prepared_batches",
    "present_kind",
    "read_flows",
    "read_minutes_since",
    "rules_of_writer",
    "stored_sources",
    "tick_of",
    "wanted_kind",
    "write_candles",
    "write_flows",
    "write_prepared",
    "write_quote",
]
