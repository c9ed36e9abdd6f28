"""The numbers of a run as lists: what was to be shown, what was measured, with which seed."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

import pytest

from . import rows
from .words import in_words

WIDTH = 138
BEGIN, END = "<!-- scorecard -->", "<!-- end of scorecard -->"


class Line(NamedTuple):
    row: str
    shown: str
    target: str
    measured: str
    seed: str


def line_of(report: pytest.TestReport) -> Line:
    told: dict[str, list[str]] = {"row": [], "target": [], "number": [], "seed": []}
    for name, value in report.user_properties:
        if name in told:
            told[name].append(in_words(str(value)))
    measured = "; ".join(told["number"]) or "holds"
    if not report.passed:
        measured = f"**FAILED** {'; '.join(told['number'])}".rstrip()
    shown = report.nodeid.rpartition("::")[2].removeprefix("test_").replace("_", " ")
    shown = re.sub(r"\[(.*)\]$", r" (\1)", shown)
    row, target, seed = (", ".join(told[name]) for name in ("row", "target", "seed"))
    return Line(row, shown, target, measured, seed)


def not_measured(lines: Iterable[Line]) -> list[Line]:
    """A line for each row that none of these shows: where it is shown, or why it is not."""
    measured = {number for line in lines for number in rows.numbers_in(line.row)}
    marked = rows.marked()
    return [
        Line(str(number), title, "", where(number, marked.get(number, ())), "")
        for number, title in rows.TITLES.items()
        if number not in measured
    ]


def where(number: int, files: Iterable[str]) -> str:
    tests = [f"`{name}`" for name in (*files, *rows.ELSEWHERE.get(number, ()))]
    if tests:
        return f"shown by {', '.join(dict.fromkeys(tests))}"
    return rows.OTHERWISE[number]


def in_order(lines: Iterable[Line]) -> list[Line]:
    """By row; what belongs to none comes last."""
    return sorted(lines, key=lambda line: (first_number(line.row), line.row, line.target, line.shown))


def first_number(row: str) -> int:
    found = re.search(r"\d+", row)
    return int(found[0]) if found else 1_000


def text(lines: Iterable[Line]) -> str:
    """A list for each row and target."""
    groups = groupby(in_order(lines), lambda line: (line.row, line.target))
    return "\n\n".join("\n".join(paragraph(*about, of)) for about, of in groups)


def paragraph(row: str, target: str, lines: Iterable[Line]) -> Iterator[str]:
    yield wrapped(f"**{row}**" + (f" Target: {target}" if target else "")) + "\n"
    for line in lines:
        seed = f" (seed {line.seed})" if line.seed else ""
        yield wrapped(f"- {line.shown}: {line.measured}{seed}", "  ")


def wrapped(words: str, indent: str = "") -> str:
    return fill(words, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def fault_of(path: Path) -> str:
    """Why nothing could be written there, asked before a run that takes minutes."""
    if not path.is_file():
        return f"SCORECARD={path}: there is no such file. Name docs/reliability.md, or a copy of it."
    if BEGIN not in path.read_text():
        return f"SCORECARD={path}: it has no line {BEGIN}, behind which the results go."
    return ""


def head(ended_at: datetime, state: str, number_of_tests: int, *, is_full: bool) -> str:
    """Of which run the results are."""
    command = "make reliability-full" if is_full else "make reliability"
    return (
        f"Of `{command}`, {number_of_tests} tests, ended on {ended_at.astimezone(UTC):%Y-%m-%d at %H:%M} UTC,"
        f" {state}, on {os.cpu_count()} cores."
    )


def state_of(folder: Path) -> str:
    """The commit of what was tested, and whether that was all of it; pages are not tested here."""
    commit = git(folder, "rev-parse", "--short=10", "HEAD")
    if not commit:
        return "of code that is in no repository"
    is_changed = git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)docs")
    return f"at commit `{commit}`" + (" with changes that are not committed" if is_changed else "")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def write(path: Path, text: str) -> None:
    """Between the marks; the words around it stay."""
    before, _, rest = path.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
