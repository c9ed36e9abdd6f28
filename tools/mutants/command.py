"""`python -m tools.mutants`: `make mutants` with options."""

from __future__ import annotations

import subprocess
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from . import catalogue
from .anchoring import Lost
from .catalogue import Mutant
from .difference import change
from .operators import draw
from .record import files_of, record, record_all
from .running import LEVELS, Planted, Run, plant_all, table
from .seen import Seen
from .tree import ROOT, module_files, module_name


def main() -> int:
    given = options()
    if given.add:
        return add(*given.add)
    if given.draw:
        return draw(given.draw, given.seed)
    mutants = chosen(given.only)
    if given.list:
        print("\n".join(f"{mutant.id}: {mutant.wrong}" for mutant in mutants))  # noqa: T201
        return 0
    faults = list(plant_all(mutants))
    lost = [found for found in faults if isinstance(found, Lost)]
    there = [found for found in faults if isinstance(found, Planted)]
    for each in lost:
        print(f"lost: {each}")  # noqa: T201
    if given.check:
        return say_moved(there, given.move) or bool(lost)
    return show(there, mutants, given) or bool(lost)


def options() -> Namespace:
    parser = ArgumentParser(
        prog="python -m tools.mutants", description="Plants faults; shows what notices them."
    )
    parser.add_argument("--only", default="", help="ids or rooms, separated by commas")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="name all faults")
    parser.add_argument(
        "--check", action="store_true", help="whether all faults have their place in the code"
    )
    parser.add_argument("--move", action="store_true", help="with --check: write where they are now")
    parser.add_argument("--fast", action="store_true", help="without servers, browsers and reliability")
    parser.add_argument("--again", action="store_true", help="forget what was noticed before")
    parser.add_argument("--within", type=float, metavar="SECONDS", help="of tests for each fault, at most")
    parser.add_argument("--record", nargs="*", metavar="TESTS", help="only these, and only what they execute")
    parser.add_argument(
        "--add", nargs=2, metavar=("ID", "WRONG"), help="the fault written into the working tree"
    )
    parser.add_argument("--draw", type=int, metavar="NUMBER", help="more faults, by the generator")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def chosen(only: str) -> list[Mutant]:
    every = catalogue.all_mutants()
    names = set(filter(None, only.split(",")))
    return [mutant for mutant in every if not names or names & {mutant.id, mutant.room}]


def show(faults: Sequence[Planted], mutants: Sequence[Mutant], given: Namespace) -> int:
    if given.record is not None:
        record(files_of(given.record), Seen(), with_served=True)
        return 0
    if not given.within:
        record_all(with_slow=not given.fast)
    run = Run(LEVELS[:1] if given.fast else LEVELS, given.within)
    if given.again:
        run.forget(faults)
    run.show(faults, given.jobs)
    outcomes = {fault.mutant.id: found for fault in faults if (found := run.outcome(fault))}
    accepted = catalogue.accepted()
    print(table(mutants, outcomes, accepted))  # noqa: T201
    unnoticed = [
        name for name, outcome in outcomes.items() if not outcome.is_noticed and name not in accepted
    ]
    return bool(unnoticed)


def say_moved(faults: Sequence[Planted], write: bool) -> int:
    moved = {fault.mutant: fault.anchor.at for fault in faults if fault.mutant.at != fault.anchor.at}
    for mutant, at in moved.items():
        print(f"moved: {mutant.id}: from {mutant.at} to {at}")  # noqa: T201
        if write:
            catalogue.replace(mutant, mutant._replace(at=at))
    print(f"{len(faults)} faults have their place.")  # noqa: T201
    return 0


def add(name: str, wrong: str) -> int:
    """The difference between the working tree and the last commit becomes a row; the file is put back."""
    changed = [path for path in module_files() if text_at_head(path) != (ROOT / path).read_text()]
    if len(changed) != 1:
        print(f"One module of the product should differ from the last commit, not {len(changed)}.")  # noqa: T201
        return 1
    (path,) = changed
    before, after = text_at_head(path), (ROOT / path).read_text()
    found = change(before, after)
    room = name.partition(".")[0]
    at = f"{module_name(path)}:{found.name}"
    mutant = Mutant(name, room, at, found.old, found.new.removesuffix("pass"), wrong, found.nth)
    catalogue.add(mutant, catalogue.CHOSEN)
    (ROOT / path).write_text(before)
    print(catalogue.row(mutant))  # noqa: T201
    return 0


def text_at_head(path: Path) -> str:
    shown = subprocess.run(  # noqa: S603
        ["git", "show", f"HEAD:{path}"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return shown.stdout
