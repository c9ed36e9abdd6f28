"""What is known of the market, in memory: the last quote and the candles of every instrument."""

from .candles import TIMEFRAMES, CandleBuilder, PriceBar, interval_start
from .history import CandleRow
from .records import AnyRecord, EmptyMinute, HistoryMinute, SeriesBegan, TickAccepted

__all__ = [
    "TIMEFRAMES",
    "AnyRecord",
    "CandleBuilder",
    "CandleRow",
    "EmptyMinute",
    "HistoryMinute",
    "PriceBar",
    "SeriesBegan",
    "TickAccepted",
    "interval_start",
]
