"""Binance's own daily files, by which a bid or an ask can be seen to be made up. It needs exits.py and the
standard library alone, because those who check a record run it too."""

from __future__ import annotations

import csv
import io
import zipfile
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from .exits import Tick

AROUND_MS, WITHIN = 30_000, Decimal("0.001")
MILLISECONDS_DIGITS = 13


class Kind(NamedTuple):
    """Of files: which columns have the time, the lowest and the highest price."""

    name: str
    width_ms: int
    time: int
    low: int
    high: int


KINDS = Kind("1s", 1_000, 0, 3, 2), Kind("aggTrades", 1_000, 5, 1, 1), Kind("1m", 60_000, 0, 3, 2)
Ranges = dict[int, tuple[Decimal, Decimal]]


class BinanceDays:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[tuple[str, str], tuple[int, Ranges]] = {}
        self.compared = 0
        self.missing = set[str]()
        """Days of which there is no file, or no price at the time."""

    def __str__(self) -> str:
        missing = f"; nothing is at hand of {', '.join(sorted(self.missing))}" if self.missing else ""
        return f"{self.compared} ticks were compared with those of Binance{missing}."

    def fault(self, symbol: str, tick: Tick) -> str:
        """What contradicts the tick, in a sentence; empty if nothing does."""
        if tick.feed not in ("", "binance"):
            return ""
        name = f"{symbol}T" if symbol.endswith("USD") else symbol
        day = datetime.fromtimestamp(tick.time_ms // 1_000, UTC).date().isoformat()
        if (name, day) not in self._read:
            self._read[name, day] = self._ranges(name, day)
        width_ms, ranges = self._read[name, day]
        first, last = (tick.time_ms - AROUND_MS) // width_ms, (tick.time_ms + AROUND_MS) // width_ms
        near = [ranges[each] for each in range(first, last + 1) if each in ranges]
        if not near:
            self.missing.add(f"{name} on {day}")
            return ""
        self.compared += 1
        low, high = min(low for low, _ in near), max(high for _, high in near)
        if tick.bid <= high * (1 + WITHIN) and tick.ask >= low * (1 - WITHIN):
            return ""
        return f"tick {tick.seq} of {tick.bid} to {tick.ask} is not Binance's, where {low} to {high} was paid"

    def _ranges(self, name: str, day: str) -> tuple[int, Ranges]:
        """By the finest file that there is."""
        for kind in KINDS:
            for path in sorted(self._folder.glob(f"{name}-{kind.name}-{day}.*")):
                return kind.width_ms, ranges_of(kind, text_of(path))
        return 1, {}


def text_of(path: Path) -> str:
    raw = path.read_bytes()
    if path.suffix == ".zip":
        packed = zipfile.ZipFile(io.BytesIO(raw))
        raw = packed.read(packed.namelist()[0])
    return raw.decode()


def ranges_of(kind: Kind, text: str) -> Ranges:
    ranges: Ranges = {}
    for row in csv.reader(text.splitlines()):
        time, low, high = row[kind.time], row[kind.low], row[kind.high]
        # A file may begin with the names of its columns.
        if time.isdigit():
            # Files from 2025 on count microseconds.
            at_ms = int(time) // (1 if len(time) <= MILLISECONDS_DIGITS else 1_000)
            prices = Decimal(low), Decimal(high)
            known = ranges.get(at_ms // kind.width_ms, prices)
            ranges[at_ms // kind.width_ms] = min(known[0], prices[0]), max(known[1], prices[1])
    return ranges
