"""What is known of the market, in memory: the last quote and the candles of every instrument."""

from .candles import TIMEFRAMES, PriceBar, interval_start
from .history import CandleRow
from .records import AnyRecord, HistoryMinute, SeriesBegan, TickAccepted

__all__ = [
    "TIMEFRAMES",
    "AnyRecord",
    "CandleRow",
    "HistoryMinute",
    "PriceBar",
    "SeriesBegan",
    "TickAccepted",
    "interval_start",
]
