"""Dukascopy's older files: an hour of ticks as LZMA-packed records; the hour stands in the path."""

import lzma
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from struct import Struct

from core.times import epoch_ms
from market.prices.records import Tick

from .format import BadFile, FileBatch, FilePosition, Format, Subject

SAMPLE = "…/EURUSD/2024/00/15/13h_ticks.bi5 (months from 00)"
# Milliseconds within the hour, ask, bid, ask volume, bid volume.
RECORD = Struct(">IIIff")
HOUR = re.compile(r"(\d{4})[/\\](\d\d)[/\\](\d\d)[/\\](\d\d)h_ticks\.bi5$")


def usual_point(digits: int) -> float:
    """Dukascopy's: five decimals for most currencies, three for the yen's pairs, metals and indices."""
    return 0.00001 if digits > 3 else 0.001


def hour_ms(path: str) -> int:
    """2024/00/15/13h_ticks.bi5 is 13:00 of 15 January: months are counted from 0."""
    match = HOUR.search(path)
    try:
        year, month, day, hour = map(int, match.groups() if match else ())
        return epoch_ms(datetime(year, month + 1, day, hour, tzinfo=UTC))
    except ValueError:
        raise BadFile(f"{path}: the hour of a .bi5 file stands in its path. Keep it as {SAMPLE}.") from None


def parse(packed: bytes, subject: Subject) -> list[Tick]:
    hour, units = hour_ms(subject.path), round(1 / subject.point)
    records = lzma.decompress(packed) if packed else b""
    if len(records) % RECORD.size:
        raise ValueError("the last record is cut short")
    return [
        Tick(subject.symbol, bid / units, ask / units, hour + within_ms)
        for within_ms, ask, bid, _, _ in RECORD.iter_unpack(records)
    ]


def read(blocks: Iterable[bytes], subject: Subject, start: FilePosition) -> Iterator[FileBatch]:
    try:
        ticks = parse(b"".join(blocks), subject)
    except (lzma.LZMAError, ValueError) as error:
        raise BadFile(f"{subject.path} is damaged: {error}. Download it again.") from None
    yield FileBatch(ticks, range(1, len(ticks) + 1))


def matches(head: bytes, path: str) -> bool:
    return path.endswith(".bi5")


FORMAT = Format("bi5", SAMPLE, matches, read)
