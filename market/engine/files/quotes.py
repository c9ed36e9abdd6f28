"""CSV with the header timestamp,bid,ask and, if it likes, bid_size,ask_size.

Times are milliseconds or ISO 8601. What is offered is no volume, so the sizes are not used."""

import re
from collections.abc import Iterable, Iterator
from itertools import repeat

from market.prices.records import Tick

from .format import FileBatch, FilePosition, Format, Subject, columns, epoch_ms, read_iso_ms, read_lines

SAMPLE = "timestamp,bid,ask (a header; then lines such as 2026-11-21T12:00:00.250Z,1.08410,1.08424)"
HEADER = re.compile(r"\ufeff?\s*timestamp\s*,\s*bid\s*,\s*ask\s*(,\s*bid_size\s*,\s*ask_size\s*)?", re.I)


def parse(text: str, symbol: str) -> list[Tick]:
    stamps, bids, asks, *sizes = columns(text)
    if len(sizes) not in (0, 2):
        raise ValueError("three columns, or five")
    times = epoch_ms(stamps) if "".join(stamps).isdecimal() else [read_iso_ms(stamp) for stamp in stamps]
    return list(map(Tick, repeat(symbol), map(float, bids), map(float, asks), times))


def is_header(line: str) -> bool:
    return HEADER.fullmatch(line) is not None


def read(blocks: Iterable[bytes], subject: Subject, start: FilePosition) -> Iterator[FileBatch]:
    return read_lines(blocks, lambda text: parse(text, subject.symbol), start, is_header)


def matches(head: bytes, path: str) -> bool:
    return is_header(head.partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r"))


FORMAT = Format("quotes", SAMPLE, matches, read)
