"""`make nightly PART=n`: what takes long, and what judges clocks and speed. It refuses no change; its figures
stand in docs/nightly.md, each beside its target and that of the run before."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "nightly.md"
BEGIN = "<!-- figures -->"
PYTEST = f"{sys.executable} -m pytest -n 2 -q --no-loadscope-reorder"
INSTALLED = ("packages", "deploy", "newcomer", "demo", "clients", "operations")
PARTS: Mapping[str, Sequence[tuple[str, str]]] = {
    "1. Clocks, floods and faults": [("Reliability", f"{PYTEST} tests/nightly/reliability")],
    "2. Drill and soak": [("Drill", "make drill"), ("Soak", "make soak")],
    "3. Whole installations": [
        ("Installations", " ".join([PYTEST, *(f"tests/nightly/{name}" for name in INSTALLED)])),
        (
            "Other long tests",
            " ".join(
                [
                    PYTEST,
                    "tests/nightly",
                    *(f"--ignore tests/nightly/{name}" for name in ("reliability", "benchmarks", *INSTALLED)),
                ]
            ),
        ),
        ("New examples", f"{PYTEST} --hypothesis-profile night -m hypothesis tests"),
        ("Client versions", "make test-clients-versions"),
        ("Ways of REST", "make test-ways"),
        ("Unsafe code", "make bandit"),
        ("Image", "make image-check"),
        ("Units", "make units-check"),
    ],
    "4. Speed of requests and the engine": [
        ("REST", "make bench-rest"),
        ("History", "make bench-history"),
        ("Engine", "make bench-engine"),
        ("Archive", "make bench-archive"),
        ("Signals", "make bench-signals"),
    ],
    "5. Speed of streams and pages": [
        ("Streams", "make bench-streams"),
        ("10,000 streams", "make bench-streams-soak"),
        ("Slots", "make bench-slots"),
        ("Growth", "make bench-growth"),
        ("Unit costs", "make bench-units"),
        ("Terminal", "make bench-terminal"),
    ],
    "6. Faults planted": [("Mutants", "make mutants")],
    "7. Thirty times beside other work": [("Shake", "make shake")],
}
HEAD = ("Figure", "Target", "Measured", "Run before", "Commit", "Date")


class Row(NamedTuple):
    figure: str
    target: str
    measured: str
    before: str
    commit: str
    date: str


Tables = dict[str, dict[str, Row]]
"""By check, and there by figure."""


def main(words: Sequence[str]) -> int:
    chosen = [title for title in PARTS if not words or title.split(".")[0] in words]
    if not chosen:
        sys.stdout.write(f"PART is one of 1 to {len(PARTS)}:\n" + "".join(f"  {each}\n" for each in PARTS))
        return 2
    missed = [name for title in chosen for check in PARTS[title] for name in run(*check)]
    sys.stdout.write(f"Missed: {'; '.join(missed)}\n" if missed else "All targets held.\n")
    return bool(missed)


def run(name: str, command: str) -> Iterator[str]:
    """Writes what one check found, and names what it missed."""
    sys.stdout.write(f"\n{name}: {command}\n")
    sys.stdout.flush()
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as figures:
        began_s = time.monotonic()
        words = shlex.split(command)
        ended = subprocess.run(words, cwd=ROOT, env=os.environ | {"FIGURES": figures.name}, check=False)  # noqa: S603
        took = f"{(time.monotonic() - began_s) / 60:.1f} min"
        found = [json.loads(line) for line in figures.read().splitlines()]
    own = {
        "figure": "The whole",
        "target": "passes",
        "measured": f"ended with {ended.returncode} after {took}",
    }
    found.append(own | {"held": ended.returncode == 0})
    PAGE.write_text(renewed(PAGE.read_text(), name, found, commit(), f"{datetime.now(UTC):%Y-%m-%d}"))
    yield from (f"{name}, {each['figure']}" for each in found if not each["held"])


def renewed(page: str, name: str, found: Iterable[Mapping[str, object]], commit: str, date: str) -> str:
    """The page with one check's table made again; the others stay as they were."""
    before, _, tables = page.partition(BEGIN)
    known = read(tables)
    old = known.get(name, {})
    known[name] = {}
    for each in found:
        figure, target, measured = (cell(each[column]) for column in ("figure", "target", "measured"))
        last = old[figure].measured if figure in old else ""
        shown = measured if each["held"] else f"**missed** {measured}"
        known[name][figure] = Row(figure, target, shown, last, commit, date)
    return f"{before}{BEGIN}\n" + "".join(written(known))


def read(tables: str) -> Tables:
    known: Tables = {}
    for line in tables.splitlines():
        if line.startswith("### "):
            known[line.removeprefix("### ")] = {}
        elif line.startswith("| ") and not line.startswith(("| Figure", "| ---")):
            row = Row(*(each.strip() for each in line.strip("| ").split(" | ")))
            known[next(reversed(known))][row.figure] = row
    return known


def written(known: Tables) -> Iterator[str]:
    for title, checks in PARTS.items():
        yield f"\n## Part {title}\n"
        for name, command in checks:
            yield f"\n### {name}\n\n"
            if rows := known.get(name):
                yield from (
                    f"| {' | '.join(line)} |\n" for line in (HEAD, ["---"] * len(HEAD), *rows.values())
                )
            else:
                yield f"`{command.replace(sys.executable, 'python')}` has not run yet.\n"


def cell(words: object) -> str:
    return " ".join(str(words).replace("|", "/").split()) or "–"


def commit() -> str:
    """With a plus where anything differs from it but the page itself."""
    changed = git("status", "--porcelain", "--untracked-files=no", "--", f":!{PAGE.relative_to(ROOT)}")
    return git("rev-parse", "--short=10", "HEAD") + ("+" if changed else "")


def git(*words: str) -> str:
    ended = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603, S607
    return ended.stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
