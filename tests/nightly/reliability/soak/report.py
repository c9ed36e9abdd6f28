"""The words and figures of a soak, between their marks in docs/reliability.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from .loads import Load
from .picture import picture as picture
from .samples import Sample, settled, slopes

BEGIN, END = "<!-- soak -->", "<!-- end of soak -->"
# How much each may rise in an hour and still count as flat. A table grows with what is published.
MOST_AN_HOUR = {"RSS of ": 1.0, "descriptors of ": 1.0, "threads of ": 1.0, "database connections": 1.0}
SHOWN = (*MOST_AN_HOUR, "p99 of ", "Redis, ", "all tables", "table ", "rows of ", "time given ")
# A slope is told of less; it is judged only where it was measured for long enough.
JUDGED_FROM_MINUTES = 30


def faults(samples: Sequence[Sample], loads: Iterable[Load]) -> list[str]:
    found = [
        f"{load.title}: {load.failed} failed, the last: {load.complaint}" for load in loads if load.failed
    ]
    last = samples[-1].figures
    found += [f"{name}: {value:.0f}" for name, value in last.items() if name.startswith("ended") and value]
    every = [item for sample in samples for item in sample.figures.items()]
    lost = {name for name, value in every if name.startswith("lost:") and value}
    found += [f"{name}, without notice" for name in sorted(lost)]
    if samples[-1].minute >= JUDGED_FROM_MINUTES:
        found += [
            f"{name} rises by {rise:.2f} an hour"
            for name, rise in slopes(samples).items()
            for start, most in MOST_AN_HOUR.items()
            if name.startswith(start) and rise > most
        ]
    return found


def table(samples: Sequence[Sample]) -> str:
    later, rises = settled(samples), slopes(samples)
    lines = ["| | at the start | once settled | at the end | maximum | change per hour |"]
    lines.append("| --- | --: | --: | --: | --: | --: |")
    for name in samples[-1].figures:
        if not name.startswith(SHOWN):
            continue
        values = [each.figures[name] for each in samples if name in each.figures]
        shown = (values[0], later[0].figures.get(name, values[0]), values[-1], max(values))
        lines.append(f"| {name} | {' | '.join(f'{value:,.1f}' for value in shown)} | {rises[name]:+.2f} |")
    return "\n".join(lines)


def text(samples: Sequence[Sample], loads: Sequence[Load], left: int) -> str:
    done = ", ".join(f"{load.done:,} {load.title} ({load.failed} failed)" for load in loads)
    since = settled(samples)[0].minute
    return (
        f"{samples[-1].minute:.0f} minutes with PostgreSQL, Redis, an engine and two web processes on one "
        f"machine: {done}; streams open at the end: {left}. Every p99 is in milliseconds. "
        f"The last column is the slope of the best straight line from minute {since:.0f} on.\n\n"
        f"![RSS, descriptors, threads, p99 and tables, minute by minute](images/soak.svg)\n\n{table(samples)}"
    )


def write(path: Path, samples: Sequence[Sample], loads: Sequence[Load], left: int) -> None:
    before, _, rest = path.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    path.write_text(f"{before}{BEGIN}\n{text(samples, loads, left)}\n{END}{after}")
