"""Candles of any span into a file or a pipe, page by page as the service writes them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TextIO

from ..synchronous import Client
from .progress import Progress

NAMES = "time,open,high,low,close,volume"
# Longer than any line.
LINE = 4096


def export(client: Client, wanted: argparse.Namespace, timeframe: str) -> None:
    path: Path | None = wanted.output
    last = newest_in(path) if path is not None and wanted.resume else None
    start = wanted.start if last is None else last + timedelta(milliseconds=1)
    end = wanted.end or datetime.now(UTC)
    if last is not None and last >= end - timedelta(milliseconds=1):
        return
    pages = client.history(wanted.symbol, timeframe, start=start, end=wanted.end).csv_pages()
    with opened(path, wanted.resume) as output:
        progress = Progress(f"{wanted.symbol.upper()} {timeframe}", end, bar_for(output))
        try:
            write(pages, output, progress, wanted.csv or path is not None, names_are_there=last is not None)
            progress.complete()
        finally:
            progress.finish()
            if path is not None:
                tell_how_to_go_on(path, progress)


def tell_how_to_go_on(path: Path, progress: Progress) -> None:
    if not path.stat().st_size:
        # The same words must not find a file there the next time.
        path.unlink()
    elif not progress.is_complete:
        print(f"Stopped. With --resume it goes on where {path} ends.", file=sys.stderr)


def write(
    pages: Generator[str, None, None],
    output: TextIO,
    progress: Progress,
    is_csv: bool,
    *,
    names_are_there: bool,
) -> None:
    for text in pages:
        names, _, lines = text.partition("\n")
        if is_csv and not names_are_there:
            output.write(f"{names}\n")
            names_are_there = True
        output.write(lines if is_csv else lines.replace(",", "  "))
        output.flush()
        if lines:
            first, last = time_of(lines), time_of(lines[lines.rstrip("\n").rfind("\n") + 1 :])
            progress.note(lines.count("\n"), first, last)


def opened(path: Path | None, is_resumed: bool) -> AbstractContextManager[TextIO]:
    if path is None:
        return nullcontext(sys.stdout)
    if path.exists() and not is_resumed:
        raise ValueError(f"{path} is there already: add --resume to go on where it ends, or name another.")
    return path.open("a", encoding="utf-8", newline="")


def newest_in(path: Path) -> datetime | None:
    """The time of a file's last candle. What is no whole line at its end is cut off."""
    if not path.exists():
        return None
    with path.open("r+b") as file:
        names = file.readline().decode(errors="replace")
        is_whole = names.endswith("\n")
        if names.rstrip() != NAMES and (is_whole or not NAMES.startswith(names)):
            raise ValueError(f"{path} is no file of candles: its first line is not {NAMES}.")
        size = file.seek(0, os.SEEK_END)
        begin = file.seek(max(0, size - LINE))
        whole = file.read()
        whole = whole[: whole.rfind(b"\n") + 1]
        has_candles = begin + len(whole) > len(names)
        file.truncate(begin + len(whole) if has_candles else 0)
    return time_of(whole.decode().rstrip("\n").rpartition("\n")[2]) if has_candles else None


def time_of(line: str) -> datetime:
    return datetime.fromisoformat(line.partition(",")[0])


def bar_for(output: TextIO) -> TextIO | None:
    """Where both are one terminal, the bar would stand among the candles."""
    return sys.stderr if sys.stderr.isatty() and not output.isatty() else None
