"""The numbers of a run as lists: what was to be shown, what was measured, with which seed."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

import pytest

from . import rows, sections
from .words import in_words, sentence, variant

WIDTH, SHORT = 138, 60
COMMANDS = {"gate": "make reliability", "nightly": "make nightly"}
"""Which of them shows what, and is run how; each writes a part of the page."""
WHERE = "where"
PARTS = (*COMMANDS, WHERE)


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


def place_of(test: str) -> str:
    return "nightly" if test.startswith("tests/nightly/") else "gate"


def where_shown() -> str:
    """For each fault the files that show it: the names of tests are for those who open them."""
    marked = rows.marked()
    shown = ["| Fault | Shown in | By |", "| --- | --- | --- |"]
    for number, title in rows.TITLES.items():
        elsewhere = [test.partition("::")[0] for test in rows.ELSEWHERE.get(number, ())]
        files = list(dict.fromkeys([*marked.get(number, ()), *elsewhere]))
        place, by = rows.OTHERWISE.get(number, ("", ""))
        places = dict.fromkeys([*map(place_of, files), *([place] if place else [])])
        by = by or ", ".join(f"`{file.removeprefix('tests/')}`" for file in files)
        shown.append(f"| {title} | {', '.join(sorted(places))} | {by} |")
    return "\n".join(shown)


def text(lines: Iterable[Line]) -> str:
    """A section for each subject; what checks the tests themselves comes behind them, in one."""
    everything = list(lines)
    results = [line for line in everything if not is_check(line)]
    checks = [line for line in everything if is_check(line)]
    return "\n\n".join([*of_results(results), *of_checks(checks)])


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


def marks(part: str) -> tuple[str, str]:
    return f"<!-- scorecard: {part} -->", f"<!-- end of scorecard: {part} -->"


def fault_of(path: Path) -> str:
    """Why nothing could be written there, asked before a run that takes minutes."""
    if not path.is_file():
        return f"SCORECARD={path}: there is no such file. Name docs/reliability.md, or a copy of it."
    missing = [mark for part in PARTS for mark in marks(part) if mark not in path.read_text()]
    return f"SCORECARD={path}: it has no line {missing[0]}, where results go." if missing else ""


def head(ended_at: datetime, state: str, number_of_tests: int, place: str) -> str:
    """Of which run the results are."""
    return (
        f"Results of `{COMMANDS[place]}` ({number_of_tests} tests), which ended on"
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


def write(path: Path, place: str, results: str) -> None:
    """What one place showed, and where everything is shown. The results of the other place stay."""
    page = path.read_text()
    for part, content in ((place, results), (WHERE, where_shown())):
        begin, end = marks(part)
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{content}\n{end}{rest.partition(end)[2]}"
    path.write_text(page)
