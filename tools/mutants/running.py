"""Plants the faults one after another and keeps what noticed each, so that a run that was stopped goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import NamedTuple

from .anchoring import Anchor, Lost, find, planted
from .catalogue import Mutant
from .choosing import Choosing
from .fresh import Copy
from .seen import SEEN, SEEN_ON_SERVICES, Seen, Test
from .tree import ON_SERVICES, PYTEST, ROOT, VAR, digest

RESULTS = VAR / "results.json"
# A slow machine is no verdict.
LEAST_LIMIT_S, TIMES_CLEAN = 60.0, 10
# What a process takes to import everything, on a machine that is busy with other things.
START_S = 120.0
LOOK_S = 0.2
NOTICED = ("noticed", "hung", "died")


class Level(NamedTuple):
    """Tests that are shown a fault together, and where it was recorded what they execute."""

    names: tuple[str, ...]
    seen: Path = SEEN
    program: Sequence[str] = PYTEST


FAST = Level(("fast",))
LEVELS = (
    FAST,
    Level(("served", "browser", "reliability")),
    Level(("services",), SEEN_ON_SERVICES, ON_SERVICES),
)


class Planted(NamedTuple):
    mutant: Mutant
    anchor: Anchor
    source: str

    @property
    def key(self) -> str:
        """Of what was shown: the same fault in the same function."""
        return sha256(f"{self.mutant.id} {self.anchor.path} {self.source}".encode()).hexdigest()[:16]


class Outcome(NamedTuple):
    outcome: str
    """noticed, hung, died, unnoticed, or unreached where no test executes the place."""
    level: str = ""
    by: str = ""
    proof: str = ""
    """The digest of the file of the test that noticed it."""

    @property
    def is_noticed(self) -> bool:
        return self.outcome in NOTICED


def plant_all(mutants: Iterable[Mutant]) -> Iterator[Planted | Lost]:
    for mutant in mutants:
        try:
            anchor = find(mutant)
            source = planted((ROOT / anchor.path).read_text(), anchor.place, mutant.new)
            compile(source, str(anchor.path), "exec", dont_inherit=True)
        except Lost as lost:
            yield lost
        else:
            yield Planted(mutant, anchor, source)


def proof_of(test: str) -> str:
    file = ROOT / test.partition("::")[0]
    return digest(file) if test and file.is_file() else ""


def limit_s(tests: Sequence[Test]) -> float:
    return max(LEAST_LIMIT_S, TIMES_CLEAN * sum(test.seconds for test in tests))


class Run:
    def __init__(self, levels: Sequence[Level], within_s: float | None) -> None:
        self._levels, self._within_s = levels, within_s
        kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        self._noting = Lock()
        self._results: dict[str, Outcome] = {key: Outcome(*value) for key, value in kept.items()}

    def outcome(self, fault: Planted) -> Outcome | None:
        return self._results.get(fault.key)

    def forget(self, faults: Iterable[Planted]) -> None:
        for fault in faults:
            self._results.pop(fault.key, None)

    def show(self, faults: Sequence[Planted], jobs: int) -> None:
        for level in self._levels:
            choosing = Choosing(Seen(level.seen))
            due = [fault for fault in faults if self._is_due(fault)]
            if not due:
                continue
            in_forks: list[tuple[Planted, list[Test]]] = []
            alone: list[tuple[Planted, list[Test]]] = []
            for fault in due:
                tests = self._within(choosing.tests(fault.anchor, level.names))
                if not tests:
                    self._note(fault, Outcome("unreached"))
                elif level is FAST:
                    in_forks.append((fault, tests))
                else:
                    alone.append((fault, tests))
            self._show_alone([*alone, *self._show_in_forks(in_forks, jobs)], jobs, level.program)

    def _is_due(self, fault: Planted) -> bool:
        """Not where a test noticed it that is as it was then."""
        known = self.outcome(fault)
        return known is None or not known.is_noticed or known.proof != proof_of(known.by)

    def _within(self, tests: list[Test]) -> list[Test]:
        if self._within_s is None:
            return tests
        chosen: list[Test] = []
        sum_s = 0.0
        for test in tests:
            sum_s += test.seconds
            if sum_s > self._within_s and chosen:
                break
            chosen.append(test)
        return chosen

    def _note(self, fault: Planted, outcome: Outcome) -> None:
        known = self.outcome(fault)
        if known is not None and outcome.outcome == "unreached":
            outcome = known
        with self._noting:
            self._results[fault.key] = outcome._replace(proof=proof_of(outcome.by))
            RESULTS.parent.mkdir(parents=True, exist_ok=True)
            RESULTS.write_text(json.dumps(self._results))
        print(f"{outcome.outcome:9} {fault.mutant.id}  {outcome.by}", flush=True)  # noqa: T201

    def _show_in_forks(
        self, due: Sequence[tuple[Planted, list[Test]]], jobs: int
    ) -> list[tuple[Planted, list[Test]]]:
        """Returns those that want a process of their own: what runs at import, and what went unnoticed."""
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(self._fork, [due[start::jobs] for start in range(jobs)]))
        return [(fault, tests) for fault, tests in due if self._is_due(fault)]

    def _fork(self, due: Sequence[tuple[Planted, list[Test]]]) -> None:
        if not due:
            return
        with TemporaryDirectory(prefix="mutants-") as name:
            plan, results = Path(name, "plan"), Path(name, "results")
            rows = [
                {
                    **{"id": fault.mutant.id, "path": str(fault.anchor.path), "source": fault.source},
                    **{"tests": [test.id for test in tests], "limit_s": limit_s(tests)},
                }
                for fault, tests in due
            ]
            plan.write_text(json.dumps(rows))
            results.touch()
            files = sorted({test.file for _, tests in due for test in tests})
            command = [
                *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
                *("-p", "tools.mutants.forking", f"--mutants-plan={plan}", f"--mutants-results={results}"),
            ]
            process = subprocess.Popen(  # noqa: S603
                [*command, *files],
                cwd=ROOT,
                env=os.environ | {"HYPOTHESIS_STORAGE_DIRECTORY": f"{name}/hypothesis"},
                stdout=subprocess.DEVNULL,
            )
            faults = {fault.mutant.id: fault for fault, _ in due}
            with results.open() as lines:
                is_over = False
                while not is_over:
                    is_over = process.poll() is not None
                    for line in lines:
                        self._hear(faults, json.loads(line))
                    time.sleep(LOOK_S)

    def _hear(self, faults: Mapping[str, Planted], said: dict[str, str]) -> None:
        if said["outcome"] in NOTICED:
            self._note(faults[said["id"]], Outcome(said["outcome"], "fast", said.get("by", "")))

    def _show_alone(
        self, due: Sequence[tuple[Planted, list[Test]]], jobs: int, program: Sequence[str]
    ) -> None:
        if not due:
            return
        with ThreadPoolExecutor(jobs) as pool:
            list(
                pool.map(lambda some: self._copy(some, program), [due[start::jobs] for start in range(jobs)])
            )

    def _copy(self, due: Sequence[tuple[Planted, list[Test]]], program: Sequence[str]) -> None:
        if not due:
            return
        with TemporaryDirectory(prefix="mutants-") as folder:
            copy = Copy(Path(folder))
            for fault, tests in due:
                limit = START_S + limit_s(tests)
                level = tests[-1].level
                said = {"outcome": "unnoticed"}
                while tests:
                    ids = [test.id for test in tests]
                    said = copy.show(fault.anchor.path, fault.source, ids, limit, program)
                    if said["outcome"] == "unnoticed":
                        break
                    at = ids.index(said["by"]) if said.get("by") in ids else None
                    shown = (
                        ids
                        if at is None
                        else [each for each in ids[: at + 1] if each.startswith(tests[at].file)]
                    )
                    if copy.passes(shown, limit, program):
                        break
                    # The fault is not what failed.
                    said = {"outcome": "unnoticed"}
                    tests = [] if at is None else tests[:at] + tests[at + 1 :]
                self._note(fault, Outcome(said["outcome"], level, said.get("by", "")))


def table(mutants: Sequence[Mutant], outcomes: Mapping[str, Outcome], accepted: Mapping[str, str]) -> str:
    """By room, and below it each that went unnoticed."""
    lines = [
        "| Room | Planted | Fast tests | Rest of the gate | Accepted | Unnoticed |",
        "|---|---|---|---|---|---|",
    ]
    rooms = list(dict.fromkeys(mutant.room for mutant in mutants))
    for room in [*rooms, "all"]:
        of_room = [mutant for mutant in mutants if room in ("all", mutant.room) and mutant.id in outcomes]
        found = [outcomes[mutant.id] for mutant in of_room]
        fast = sum(each.is_noticed and each.level == "fast" for each in found)
        rest = sum(each.is_noticed and each.level != "fast" for each in found)
        agreed = sum(not outcomes[mutant.id].is_noticed and mutant.id in accepted for mutant in of_room)
        lines.append(
            f"| {room} | {len(found)} | {fast} | {rest} | {agreed} | {len(found) - fast - rest - agreed} |"
        )
    for mutant in mutants:
        outcome = outcomes.get(mutant.id)
        if outcome is not None and not outcome.is_noticed:
            why = accepted.get(mutant.id, "")
            lines.append(
                f"{'accepted' if why else outcome.outcome}: {mutant.id}: {mutant.wrong} {why}".rstrip()
            )
    return "\n".join(lines)
