"""HistData.com's ASCII ticks: time, bid, ask, volume (always 0)."""

import re
from collections.abc import Iterable, Iterator
from itertools import repeat

from market.prices.records import Tick

from .format import FileBatch, FilePosition, Format, Subject, columns, read_iso_ms, read_lines

# Eastern time without daylight saving, all year round.
BEHIND_UTC_MS = 5 * 3_600_000
STAMP_LENGTH, MINUTE_LENGTH = len("20120201 000003660"), len("20120201 0000")
KNOWN_MINUTES = 10_000
SAMPLE = "20120201 000003660,1.306600,1.306770,0"


class _Minutes(dict[str, int]):
    """A minute's text is made a time once for all its ticks."""

    def __missing__(self, text: str) -> int:
        if len(self) >= KNOWN_MINUTES:
            self.clear()
        self[text] = made = read_iso_ms(text) + BEHIND_UTC_MS
        return made


_minutes = _Minutes()


def parse(text: str, symbol: str) -> list[Tick]:
    stamps, bids, asks, _ = columns(text)
    within = [stamp[MINUTE_LENGTH:] for stamp in stamps]
    if set(map(len, stamps)) != {STAMP_LENGTH} or not "".join(within).isdecimal():
        raise ValueError("no such time")
    within_ms = [int(digits) for digits in within]
    if max(within_ms) >= 60_000:
        raise ValueError("no such second")
    times = [_minutes[stamp[:MINUTE_LENGTH]] + ms for stamp, ms in zip(stamps, within_ms, strict=True)]
    return list(map(Tick, repeat(symbol), map(float, bids), map(float, asks), times))


def read(blocks: Iterable[bytes], subject: Subject, start: FilePosition) -> Iterator[FileBatch]:
    return read_lines(blocks, lambda text: parse(text, subject.symbol), start)


def matches(head: bytes, path: str) -> bool:
    return re.search(rb"(?m)^\d{8} \d{9},", head) is not None


def are_bars(head: bytes) -> bool:
    """HistData's M1 files: 20120201 000100;1.306570;1.306570;1.306470;1.306560;0"""
    return re.search(rb"(?m)^\d{8} \d{6};", head) is not None


FORMAT = Format("histdata", SAMPLE, matches, read)
