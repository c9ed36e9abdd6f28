"""How every benchmark shows its figures."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tests.nightly.figures import note

Rounds = Mapping[tuple[str, str], Sequence[Any]]
"""By case and server, one load a round."""


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


class Verdict(NamedTuple):
    figure: str
    target: str
    found: str
    held: bool


def conclude(*verdicts: Verdict) -> int:
    """Each is noted and said; 1 where one does not hold."""
    for each in verdicts:
        note(each.figure, each.target, each.found, held=each.held)
        say(f"{'held  ' if each.held else 'MISSED'} {each.figure}: {each.found}; {each.target}\n")
    return int(not all(each.held for each in verdicts))


def machine() -> str:
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    model = names[0].partition(":")[2].strip() if names else platform.machine()
    python = platform.python_version()
    return f"{model}, {os.cpu_count()} cores, Linux {platform.release()}, Python {python}."


def spread(values: Sequence[float]) -> str:
    """The median, and the lowest and highest of several."""
    digits = 0 if max(values) >= 100 else 1 if max(values) >= 10 else 2
    low, middle, high = (f"{value:,.{digits}f}" for value in (min(values), median(values), max(values)))
    return middle if low == high else f"{middle} ({low}–{high})"


def ratios(rounds: Rounds, case: str, figure: str, of: str, against: str) -> list[float]:
    """One a round: servers that ran one after the other are compared, and no others."""
    ours, peers = (
        [getattr(load, figure) for load in rounds.get((case, server), ())] for server in (of, against)
    )
    return [one / other for one, other in zip(ours, peers, strict=False) if other]


def markdown(rows: Iterable[Sequence[str]]) -> str:
    head, *others = rows
    lines = [head, ["---"] * len(head), *others]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]))
    return "\n".join(lines) + "\n"
