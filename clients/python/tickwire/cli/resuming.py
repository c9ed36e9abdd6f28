"""Whether an export may go on where a file ends: candles of something else must never be written after it."""

from __future__ import annotations

import argparse
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from ..missed import STEPS_MS
from ..synchronous import Client

NAMES = "time,open,high,low,close,volume"
# Longer than any two lines.
TAIL = 4096
STEPS = {timeframe: timedelta(milliseconds=step_ms) for timeframe, step_ms in STEPS_MS.items()}


class Row(NamedTuple):
    time: datetime
    numbers: tuple[float, ...]


class Written(NamedTuple):
    """What a file has of candles, as far as it matters here."""

    path: Path
    first: Row
    before_last: Row | None
    last: Row
    size: int
    """Without what is no whole line at its end."""


def read_written(path: Path) -> Written | None:
    """None where no candle is there. It changes nothing: the file may turn out to be of something else."""
    if not path.exists():
        return None
    with path.open("rb") as file:
        names = file.readline().decode(errors="replace")
        is_whole = names.endswith("\n")
        if names.rstrip() != NAMES and (is_whole or not NAMES.startswith(names)):
            raise ValueError(f"{path} is not a file of candles: its first line is not {NAMES}.")
        begin, first = file.tell(), file.readline()
        size = file.seek(0, os.SEEK_END)
        begin = file.seek(max(begin, size - TAIL))
        tail = file.read()
    whole = tail[: tail.rfind(b"\n") + 1]
    if not whole:
        return None
    rows = [row_in(path, line) for line in (first, *whole.splitlines()[-2:])]
    return Written(path, rows[0], rows[1] if len(rows) > 2 else None, rows[-1], begin + len(whole))


def cut_off(path: Path, written: Written | None) -> None:
    """What is no whole line, and names without a candle, which are written again."""
    if path.exists():
        os.truncate(path, 0 if written is None else written.size)


def row_in(path: Path, line: bytes) -> Row:
    text = line.decode(errors="replace").rstrip()
    try:
        return row_of(text)
    except ValueError:
        raise ValueError(f"{path} cannot be resumed: {text[:100]!r} in it is not a candle.") from None


def row_of(line: str) -> Row:
    time, *numbers = line.split(",")
    row = Row(datetime.fromisoformat(time), tuple(float(number) for number in numbers))
    if row.time.tzinfo is None or len(numbers) != NAMES.count(","):
        raise ValueError("no candle")
    return row


def check(client: Client, wanted: argparse.Namespace, timeframe: str, written: Written) -> None:
    comparison = Comparison(client, wanted.symbol, timeframe, written.path)
    comparison.check_step(written)
    comparison.check_candle(written.last, "last", "Write into another file.")
    if wanted.start is not None:
        comparison.check_start(wanted.start, written.first)


class Comparison:
    """Of a file with what the service has now."""

    def __init__(self, client: Client, symbol: str, timeframe: str, path: Path) -> None:
        self._client, self._symbol, self._timeframe = client, symbol, timeframe
        self._what = f"{symbol.upper()} {timeframe}"
        self._refused = f"{path} cannot be resumed as {self._what}"

    def check_step(self, written: Written) -> None:
        """A timeframe that is none, the service refuses in better words."""
        before, last = written.before_last, written.last
        if before is not None and last.time - before.time < STEPS.get(self._timeframe, timedelta()):
            times = f"{told(before.time)} and {told(last.time)}"
            raise ValueError(f"{self._refused}: its last two candles, {times}, are closer than that.")

    def check_start(self, start: datetime, first: Row) -> None:
        if start > first.time:
            raise ValueError(
                f"{self._refused}: it begins at {told(first.time)}, before --start. Leave --start out, or "
                "write into another file."
            )
        if start < first.time:
            self.check_candle(first, "first", "Leave --start out to continue anyway.", start)

    def check_candle(self, row: Row, which: str, advice: str, start: datetime | None = None) -> None:
        """Whether the service has it, as the first from `start` on if that is given."""
        found = self._first_from(start or row.time)
        if found == row:
            return
        if found is not None and found.time <= row.time:
            why = self._of_another(row, which) if found.time == row.time else self._of_earlier(found, row)
        else:
            why = self._of_missing(row, which)
        raise ValueError(f"{self._refused}: {why} {advice}")

    def _of_another(self, row: Row, which: str) -> str:
        return (
            f"the service has another candle at {told(row.time)}, the {which} of the file. Either the file "
            "is of another instrument or timeframe, or that candle has been corrected since."
        )

    def _of_earlier(self, found: Row, row: Row) -> str:
        return (
            f"the first candle at or after --start is that of {told(found.time)}, but the file begins "
            f"at {told(row.time)}."
        )

    def _of_missing(self, row: Row, which: str) -> str:
        begins = self._first_from(None)
        if begins is None:
            return "the service has no such candles."
        if begins.time <= row.time:
            return (
                f"the service has no candle at {told(row.time)}, the {which} of the file, which is of "
                "another instrument or timeframe."
            )
        return (
            f"the candles that the service still has begin at {told(begins.time)}, after the {which} of the "
            f"file at {told(row.time)}. That one cannot be compared, and some in between may be missing."
        )

    def _first_from(self, start: datetime | None) -> Row | None:
        pages = self._client.history(self._symbol, self._timeframe, start=start, limit=1).csv_pages()
        lines = next(pages).splitlines()
        return row_of(lines[1]) if len(lines) > 1 else None


def told(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%MZ}"
