"""The tables of a drill, for docs/reliability.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from .damage import LIMIT, Damage, harm_of

BEGIN, END = "<!-- drill -->", "<!-- /drill -->"
HEAD = (
    "What failed",
    "Messages lost / duplicated",
    "Clients notified of stale prices / of a gap",
    "Longest silence (s)",
    "Ticks lost / duplicated",
    "Ticks refused",
    "Signals lost",
    "Longest time without an answer (s)",
    "Requests and pushes failed for (s)",
    "Most requests admitted in a minute / sent in all",
    "Answers",
)
# Columns of clients, of what was acknowledged, and of requests; all at once fit no page.
TABLES = (
    ("Clients of the streams", range(1, 4)),
    ("Ticks and signals", range(4, 7)),
    ("Requests", range(7, 11)),
)
Row = tuple[str, ...]


class NotTried(Exception):
    """A fault that cannot be made here."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(why)
        self.name = name


class Result(NamedTuple):
    row: Row
    harm: list[str]


def results_of(case: str, damages: Iterable[Damage]) -> Iterator[Result]:
    """Of each fault as it is over, and of what kept the case from its end."""
    try:
        for damage in damages:
            yield Result(row_of(damage), harm_of(damage))
    except NotTried as fault:
        yield Result(row_without_numbers(fault.name, f"**not tried**: {fault}"), [])
    except AssertionError as error:
        yield Result(row_without_numbers(case, f"**did not recover**: {error}"), [str(error)])


def row_of(damage: Damage) -> Row:
    return (
        damage.name,
        f"{damage.missed} / {damage.doubled}",
        f"{damage.stale} / {damage.gaps} of {damage.sockets}",
        f"{damage.silent_s:.1f}",
        f"{damage.ticks_lost} / {damage.ticks_doubled}",
        counted(damage.ticks_refused) or "0",
        f"{damage.signals_lost}" + (f": {damage.ledger_fault}" if damage.ledger_fault else ""),
        f"{damage.unanswered_s:.1f}",
        f"{damage.failing_s:.1f}",
        f"{damage.admission.most_in_a_minute} / {damage.admission.asked:,}" if damage.admission else "",
        answers_of(damage),
    )


def lines_of(damage: Damage) -> list[str]:
    """For the scorecard."""
    admission = damage.admission
    admitted = (
        [f"admitted within any minute: {admission.most_in_a_minute} (limit {LIMIT})"] if admission else []
    )
    return [
        f"{damage.name}: missed without notice: {damage.missed}; notified of a gap: {damage.gaps};"
        f" notified of stale prices: {damage.stale}",
        f"acknowledged but lost: {damage.ticks_lost} ticks, {damage.signals_lost} signals",
        f"ticks refused: {counted(damage.ticks_refused) or 0}",
        f"longest silence {damage.silent_s:.1f} s, longest time without an answer"
        f" {damage.unanswered_s:.1f} s",
        f"answers: {answers_of(damage)}",
        *admitted,
    ]


def answers_of(damage: Damage) -> str:
    return counted({status or "broken": count for status, count in sorted(damage.statuses.items())})


def counted(counts: Mapping[str, int] | Mapping[int | str, int]) -> str:
    return ", ".join(f"{count} × {what}" for what, count in counts.items())


def row_without_numbers(name: str, why: str) -> Row:
    return (name, why, *[""] * (len(HEAD) - 2))


def tables(rows: Sequence[Row]) -> str:
    return "\n\n".join(f"{title}:\n\n{table(rows, columns)}" for title, columns in TABLES)


def table(rows: Sequence[Row], columns: Iterable[int]) -> str:
    picked = (0, *columns)
    lines = [[row[column] for column in picked] for row in (HEAD, ("---",) * len(HEAD), *rows)]
    # What was not tried has its reason in the first table, and no line in the others.
    return "\n".join(f"| {' | '.join(line)} |" for line in lines if any(line[1:]))


def write(path: Path, text: str) -> None:
    """Between the marks; the words around it stay."""
    before, mark, rest = path.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    if not mark:
        raise ValueError(f"{path} has no line {BEGIN}, behind which the tables go.")
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
