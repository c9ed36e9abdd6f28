"""The faults: one row each in faults/chosen.toml (by hand) and drawn.toml (by the generator), by room."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "faults"
CHOSEN, DRAWN, ACCEPTED = (FOLDER / f"{name}.toml" for name in ("chosen", "drawn", "accepted"))


class Mutant(NamedTuple):
    """Replace `old`, which stands once in `at` (module:qualified name), by `new`; an empty one drops a
    statement. `nth` says which is meant where it stands there more than once."""

    id: str
    room: str
    at: str
    old: str
    new: str
    wrong: str
    """What is wrong then."""
    nth: int = 0


def read(path: Path) -> list[Mutant]:
    if not path.exists():
        return []
    tables = tomllib.loads(path.read_text())
    return [
        Mutant(id=f"{room}.{name}", room=room, **row)
        for room, rows in tables.items()
        for name, row in rows.items()
    ]


def all_mutants() -> list[Mutant]:
    return [*read(CHOSEN), *read(DRAWN)]


def accepted() -> dict[str, str]:
    """Those that change nothing that matters, by id, and why."""
    found: dict[str, str] = tomllib.loads(ACCEPTED.read_text()) if ACCEPTED.exists() else {}
    return found


def row(mutant: Mutant) -> str:
    """As it stands in its file."""
    name = mutant.id.partition(".")[2]
    shown = {"at": mutant.at, "old": mutant.old, "new": mutant.new, "wrong": mutant.wrong}
    fields = [f"{key} = {toml_text(value)}" for key, value in shown.items()]
    if mutant.nth:
        fields.insert(2, f"nth = {mutant.nth}")
    return f"{name} = {{ {', '.join(fields)} }}"


def toml_text(text: str) -> str:
    if "'" not in text and text.isprintable():
        return f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def add(mutant: Mutant, path: Path) -> None:
    """At the end of its room's table."""
    lines = path.read_text().splitlines() if path.exists() else []
    head = f"[{mutant.room}]"
    if head not in lines:
        lines += ([""] if lines else []) + [head]
    start = lines.index(head) + 1
    end = next((place for place in range(start, len(lines)) if lines[place].startswith("[")), len(lines))
    while end > start and not lines[end - 1]:
        end -= 1
    lines.insert(end, row(mutant))
    path.write_text("\n".join(lines) + "\n")


def replace(old: Mutant, new: Mutant) -> None:
    for path in (CHOSEN, DRAWN):
        if old in read(path):
            path.write_text(path.read_text().replace(row(old) + "\n", row(new) + "\n"))
