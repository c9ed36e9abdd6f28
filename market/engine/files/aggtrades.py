"""Binance's dumps of aggregated trades: id, price, size, first id, last id, time, buyer is maker, best match
(futures lack the last)."""

import re
from collections.abc import Iterable, Iterator
from itertools import repeat

from market.prices.records import Tick

from .format import FileBatch, FilePosition, Format, Subject, columns, epoch_ms, read_lines

SAMPLE = "12345,0.00100000,100.0,100,105,1672515782136,True,True"
# Where the buyer is the maker, the taker sold.
TAKER_SIDES = {"True": -1, "true": -1, "False": 1, "false": 1}


def parse(text: str, symbol: str) -> list[Tick]:
    ids, written, sizes, _, _, stamps, makers, *_ = columns(text)
    prices = [float(price) for price in written]
    sides = [TAKER_SIDES[maker] for maker in makers]
    times, volumes = epoch_ms(stamps), map(float, sizes)
    return list(map(Tick, repeat(symbol), prices, prices, times, volumes, sides, prices, map(int, ids)))


def is_header(line: str) -> bool:
    return not line[:1].isdigit()


def read(blocks: Iterable[bytes], subject: Subject, start: FilePosition) -> Iterator[FileBatch]:
    return read_lines(blocks, lambda text: parse(text, subject.symbol), start, is_header)


def matches(head: bytes, path: str) -> bool:
    row = rb"(?mi)^\d+,[\d.]+,[\d.]+,\d+,\d+,\d{13,16},(true|false)(,(true|false))?\r?$"
    return re.search(row, head) is not None


FORMAT = Format("aggtrades", SAMPLE, matches, read, holds_trades=True)
