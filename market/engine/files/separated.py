"""Comma-separated lines: quotes under a header, HistData's quotes and bars, and Binance's trades and bars."""

import re
from collections.abc import Sequence
from itertools import repeat

from core.times import MINUTE_MS
from market.prices.records import Tick

from .format import Format, by_line, columns, read_iso_ms, read_stamps

# What is offered is no volume, so the sizes are not used.
QUOTES_SAMPLE = "timestamp,bid,ask (a header; then lines such as 2026-11-21T12:00:00.250Z,1.08410,1.08424)"
HEADER = re.compile(r"\ufeff?\s*timestamp\s*,\s*bid\s*,\s*ask\s*(,\s*bid_size\s*,\s*ask_size\s*)?", re.I)


def parse_quotes(text: str, symbol: str) -> list[Tick]:
    stamps, bids, asks, *sizes = columns(text)
    if len(sizes) not in (0, 2):
        raise ValueError("three columns, or five")
    times = read_stamps(stamps) if "".join(stamps).isdecimal() else [read_iso_ms(stamp) for stamp in stamps]
    return list(map(Tick, repeat(symbol), map(float, bids), map(float, asks), times))


def is_header(line: str) -> bool:
    return HEADER.fullmatch(line) is not None


def are_quotes(head: bytes, path: str) -> bool:
    return is_header(head.partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r"))


QUOTES = Format("quotes", QUOTES_SAMPLE, are_quotes, by_line(parse_quotes, is_header))

# HistData.com's ASCII ticks: time, bid, ask, volume (always 0).
HISTDATA_SAMPLE = "20120201 000003660,1.306600,1.306770,0"

# Its times are Eastern without daylight saving, all year round.
BEHIND_UTC_MS = 5 * 3_600_000
STAMP_LENGTH, MINUTE_LENGTH = len("20120201 000003660"), len("20120201 0000")
KNOWN_MINUTES = 10_000


class EasternMinutes(dict[str, int]):
    """A minute's text is made a time once for all its ticks."""

    def __missing__(self, text: str) -> int:
        if len(self) >= KNOWN_MINUTES:
            self.clear()
        self[text] = made = read_iso_ms(text) + BEHIND_UTC_MS
        return made


eastern_minutes = EasternMinutes()


def parse_histdata(text: str, symbol: str) -> list[Tick]:
    stamps, bids, asks, _ = columns(text)
    within = [stamp[MINUTE_LENGTH:] for stamp in stamps]
    if set(map(len, stamps)) != {STAMP_LENGTH} or not "".join(within).isdecimal():
        raise ValueError("no such time")
    within_ms = [int(digits) for digits in within]
    if max(within_ms) >= 60_000:
        raise ValueError("no such second")
    times = [eastern_minutes[stamp[:MINUTE_LENGTH]] + ms for stamp, ms in zip(stamps, within_ms, strict=True)]
    return list(map(Tick, repeat(symbol), map(float, bids), map(float, asks), times))


def is_histdata(head: bytes, path: str) -> bool:
    return re.search(rb"(?m)^\d{8} \d{9},", head) is not None


HISTDATA = Format("histdata", HISTDATA_SAMPLE, is_histdata, by_line(parse_histdata))

# Binance's dumps of aggregated trades: id, price, size, first id, last id, time, buyer is maker, best match
# (futures lack the last).
AGGTRADES_SAMPLE = "12345,0.00100000,100.0,100,105,1672515782136,True,True"

# Where the buyer is the maker, the taker sold.
TAKER_SIDES = {"True": -1, "true": -1, "False": 1, "false": 1}


def parse_aggtrades(text: str, symbol: str) -> list[Tick]:
    ids, written, sizes, _, _, stamps, makers, *_ = columns(text)
    prices = [float(price) for price in written]
    sides = [TAKER_SIDES[maker] for maker in makers]
    times, volumes = read_stamps(stamps), map(float, sizes)
    return list(map(Tick, repeat(symbol), prices, prices, times, volumes, sides, prices, map(int, ids)))


def has_names(line: str) -> bool:
    return not line[:1].isdigit()


def are_aggtrades(head: bytes, path: str) -> bool:
    row = rb"(?mi)^\d+,[\d.]+,[\d.]+,\d+,\d+,\d{13,16},(true|false)(,(true|false))?\r?$"
    return re.search(row, head) is not None


AGGTRADES = Format(
    "aggtrades",
    AGGTRADES_SAMPLE,
    are_aggtrades,
    by_line(parse_aggtrades, has_names),
    basis="trades",
)


# Lines that are minutes: HistData's M1 and Binance's klines.
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
