"""The table of a drill, for docs/reliability.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .stage import LIMIT, Damage

BEGIN, END = "<!-- drill -->", "<!-- /drill -->"
HEAD = (
    "What failed",
    "Messages lost untold / doubled",
    "Clients told: stale / of a gap",
    "Acknowledged ticks lost / doubled",
    "Acknowledged signals lost",
    "Silent streams (s)",
    "No answer (s)",
    f"Let in within a minute, of {LIMIT}",
    "Answers",
)


def row_of(damage: Damage, sockets: int) -> tuple[str, ...]:
    answers = ", ".join(
        f"{count} × {status or 'broken'}" for status, count in sorted(damage.statuses.items())
    )
    return (
        damage.name,
        f"{damage.missed} / {damage.doubled}",
        f"{damage.stale} / {damage.gaps} of {sockets}",
        f"{damage.ticks_lost} / {damage.ticks_doubled}",
        f"{damage.signals_lost}" + (f": {damage.ledger_fault}" if damage.ledger_fault else ""),
        f"{damage.silent_s:.1f}",
        f"{damage.unanswered_s:.1f}",
        f"{damage.most_in_a_minute}",
        answers,
    )


def row_not_over(scene: str, why: str) -> tuple[str, ...]:
    """A scene that ended before its time."""
    return (scene, f"**not got over**: {why}", *[""] * (len(HEAD) - 2))


def table(rows: Sequence[tuple[str, ...]]) -> str:
    lines = [HEAD, ("---",) * len(HEAD), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def write(path: Path, text: str) -> None:
    """Between the marks; the words around it stay."""
    before, mark, rest = path.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    if not mark:
        raise ValueError(f"{path} has no line {BEGIN}, behind which the table goes.")
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def is_harmless(damage: Damage) -> bool:
    """Nothing was lost or doubled without a word, and nothing that was acknowledged."""
    numbers = damage.missed, damage.doubled, damage.ticks_lost, damage.ticks_doubled, damage.signals_lost
    return not any(numbers) and not damage.ledger_fault
