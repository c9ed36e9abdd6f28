"""Candles of any span into a file or a pipe, page by page as the service writes them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TextIO

from ..synchronous import Client
from .progress import Progress
from .resuming import check, cut_off, read_written


def export(client: Client, wanted: argparse.Namespace, timeframe: str) -> None:
    path: Path | None = wanted.output
    last = last_in(path, client, wanted, timeframe) if path is not None and wanted.resume else None
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


def last_in(path: Path, client: Client, wanted: argparse.Namespace, timeframe: str) -> datetime | None:
    """The time of the file's last candle, once it is sure that those that follow belong to it."""
    written = read_written(path)
    if written is not None:
        check(client, wanted, timeframe, written)
    cut_off(path, written)
    return None if written is None else written.last.time


def tell_how_to_go_on(path: Path, progress: Progress) -> None:
    if not path.stat().st_size:
        # The same words must not find a file there the next time.
        path.unlink()
    elif not progress.is_complete:
        print(f"Stopped. To continue where {path} ends, repeat the command with --resume.", file=sys.stderr)


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
        raise ValueError(
            f"{path} already exists: add --resume to continue where it ends, or name another file."
        )
    return path.open("a", encoding="utf-8", newline="")


def time_of(line: str) -> datetime:
    return datetime.fromisoformat(line.partition(",")[0])


def bar_for(output: TextIO) -> TextIO | None:
    """Where both are one terminal, the bar would stand among the candles."""
    return sys.stderr if sys.stderr.isatty() and not output.isatty() else None
