"""What the database holds of the market: candles, checkpoints, and which process writes them."""

from .candle_rows import CandleToWrite, read_minutes_since, write_candles
from .checkpoints import tick_of, write_quote
from .lease import LeaseLost
from .series import change_kind, hold_series, lock_series, present_kind, wanted_kind

__all__ = [
    "LeaseLost",
    "CandleToWrite",
    "change_kind",
    "hold_series",
    "lock_series",
    "present_kind",
    "read_minutes_since",
    "tick_of",
    "wanted_kind",
    "write_candles",
    "write_quote",
]
