"""The numbers of a run as lists: what was to be shown, what was measured, with which seed."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

import pytest

from . import rows, sections
from .words import in_words, sentence, variant

WIDTH, SHORT = 138, 60
BEGIN, END = "<!-- scorecard -->", "<!-- end of scorecard -->"


class Line(NamedTuple):
    row: str
    shown: str
    variant: str
    """Which of the parameters of a test, in words; empty where they are none."""
    target: str
    measured: str
    """Empty where a test has no number to report."""
    seed: str


def line_of(report: pytest.TestReport) -> Line:
    told: dict[str, list[str]] = {"row": [], "target": [], "number": [], "seed": []}
    for name, value in report.user_properties:
        if name in told:
            told[name].append(in_words(str(value)))
    measured = "; ".join(told["number"])
    if not report.passed:
        measured = f"**FAILED** {measured}".rstrip()
    name, _, parameters = report.nodeid.rpartition("::")[2].partition("[")
    row, target, seed = (", ".join(told[name]) for name in ("row", "target", "seed"))
    shown = sentence(name.removeprefix("test_"))
    return Line(row, shown, variant(parameters.removesuffix("]")), target, measured, seed)


def is_check(line: Line) -> bool:
    """Whether it shows that a fault would be noticed, and not that there is none."""
    return line.row in sections.OF_CHECKS or line.shown.startswith("Control ")


def left_to_others(lines: Iterable[Line]) -> dict[int, str]:
    """Of each fault that none of these measured: where it is tested, or why it is not."""
    measured = {number for line in lines for number in rows.numbers_in(line.row)}
    marked = rows.marked()
    return {number: where(number, marked.get(number, ())) for number in rows.TITLES if number not in measured}


def where(number: int, files: Iterable[str]) -> str:
    """The files alone: the names of tests are for those who open them."""
    full = [f"`{name}` (`make reliability-full` only)" for name in files]
    tests = [f"`{name.partition('::')[0]}`" for name in rows.ELSEWHERE.get(number, ())]
    return ", ".join(dict.fromkeys([*full, *tests])) or rows.OTHERWISE[number]


def text(lines: Iterable[Line]) -> str:
    """A section for each subject; what checks the tests themselves comes behind them, in one."""
    everything = list(lines)
    results = [line for line in everything if not is_check(line)]
    checks = [line for line in everything if is_check(line)]
    paragraphs = [*of_results(results), *of_checks(checks), *of_others(left_to_others(everything))]
    return "\n\n".join(paragraphs)


def title_of(line: Line) -> str:
    return sections.TITLES[line.row]


def of_results(lines: Iterable[Line]) -> Iterator[str]:
    places = {title: place for place, title in enumerate(sections.ROWS)}
    in_order = sorted(lines, key=lambda line: (places[title_of(line)], line.target, line.shown, line.variant))
    for title, of_title in groupby(in_order, title_of):
        yield f"### {title}"
        for target, of_target in groupby(of_title, lambda line: line.target):
            yield wrapped(f"Target: {target}.")
            yield bullets(of_target)


def of_checks(lines: Sequence[Line]) -> Iterator[str]:
    if not lines:
        return
    noticed = sum("**FAILED**" not in line.measured for line in lines)
    yield "### Checks of the checks"
    measured = [
        line._replace(shown=sentence(line.shown.removeprefix("Control "))) for line in lines if line.measured
    ]
    yield wrapped(
        "These tests plant a fault or remove a safeguard, to prove that the tests above would notice."
        f" {noticed} of {len(lines)} noticed it." + (" Those with a number to report:" if measured else "")
    )
    if measured:
        yield bullets(sorted(measured, key=lambda line: (line.shown, line.variant)))


def of_others(places: Mapping[int, str]) -> Iterator[str]:
    if places:
        yield "### Tested elsewhere"
        yield "This run does not measure the following. The tests are in the files named."
        yield "\n".join(
            wrapped(f"- {rows.TITLES[number]}: {place}.", "  ") for number, place in places.items()
        )


def bullets(lines: Iterable[Line]) -> str:
    """One for each test, whatever the number of its parameters."""
    groups = groupby(lines, lambda line: line.shown)
    return "\n".join("\n".join(bullet(shown, list(of))) for shown, of in groups)


def bullet(shown: str, lines: Sequence[Line]) -> Iterator[str]:
    seeds = ", ".join(dict.fromkeys(line.seed for line in lines if line.seed))
    about = f"- {shown}" + (f" (seed {seeds})" if seeds else "")
    values = [value_of(line) for line in lines if line.measured]
    if not values:
        yield wrapped(about + (f" ({len(lines)} cases)" if len(lines) > 1 else "") + ".", "  ")
    elif len(values) == 1 or all(len(value) <= SHORT for value in values):
        yield wrapped(f"{about}: {'; '.join(values)}.", "  ")
    else:
        yield wrapped(f"{about}:", "  ")
        yield from (wrapped(f"  - {value}.", "    ") for value in values)


def value_of(line: Line) -> str:
    """With the variant in front, unless the words say it."""
    is_said = all(word in line.measured for word in re.findall(r"[^\s,]+", line.variant))
    return line.measured if is_said else f"{line.variant}: {line.measured}"


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
        f"Results of `{command}` ({number_of_tests} tests), which ended on"
        f" {ended_at.astimezone(UTC):%Y-%m-%d at %H:%M} UTC, {state}, on {os.cpu_count()} cores."
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
