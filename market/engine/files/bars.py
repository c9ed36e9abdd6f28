"""Lines that are minutes: HistData's M1 and Binance's klines."""

import re
from collections.abc import Sequence

from core.times import MINUTE_MS
from market.prices.records import Tick

from .format import Format, by_line, columns, read_stamps
from .separated import MINUTE_LENGTH, eastern_minutes, has_names

# They tell neither how the price went within the minute nor what the ask was.
BASIS = "import"


class Bar(Tick, frozen=True, gc=False, kw_only=True):
    """To the rules for ticks its low is a bid and its high an ask."""

    open: float
    close: float


def bars_of(symbol: str, times: Sequence[int], *values: Sequence[str]) -> list[Tick]:
    bars = list[Tick]()
    for time_ms, *texts in zip(times, *values, strict=True):
        first, high, low, last, volume = map(float, texts)
        if time_ms % MINUTE_MS or not low <= min(first, last) <= max(first, last) <= high:
            raise ValueError("no minute, or prices outside its extremes")
        bars.append(Bar(symbol, low, high, time_ms, volume, open=first, close=last))
    return bars


# Eastern time, open, high, low, close, volume (always 0), of bids.
M1_SAMPLE = "20120201 000100;1.306570;1.306570;1.306470;1.306560;0"


def parse_m1(text: str, symbol: str) -> list[Tick]:
    stamps, *values = columns(text, ";")
    if {stamp[MINUTE_LENGTH:] for stamp in stamps} != {"00"} or len(values) != 5:
        raise ValueError("no such minute")
    return bars_of(symbol, [eastern_minutes[stamp[:MINUTE_LENGTH]] for stamp in stamps], *values)


def are_m1(head: bytes, path: str) -> bool:
    return re.search(rb"(?m)^\d{8} \d{6};", head) is not None


M1 = Format("histdata-m1", M1_SAMPLE, are_m1, by_line(parse_m1), BASIS)

# Open time, open, high, low, close, volume, close time, and five columns that are not used.
KLINES_SAMPLE = "1672515780000,0.0010,0.0025,0.0009,0.0020,1000,1672515839999,2.5,100,500,1.2,0"
KLINES_COLUMNS = 12


def parse_klines(text: str, symbol: str) -> list[Tick]:
    stamps, *values = columns(text)
    if len(values) != KLINES_COLUMNS - 1:
        raise ValueError("as many columns as klines have")
    times, ends = read_stamps(stamps), read_stamps(values[5])
    if any(end_ms - time_ms != MINUTE_MS - 1 for time_ms, end_ms in zip(times, ends, strict=True)):
        raise ValueError("bars of another length")
    return bars_of(symbol, times, *values[:5])


def are_klines(head: bytes, path: str) -> bool:
    return re.search(rb"(?m)^\d{13,16}(,[\d.]+){5},\d{13,16},", head) is not None


KLINES = Format("klines", KLINES_SAMPLE, are_klines, by_line(parse_klines, has_names), BASIS)
