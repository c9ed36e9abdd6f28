"""Has the tests record what they execute, a handful of files at a time, so that what is done is kept."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from .seen import SEEN_ON_SERVICES, Seen
from .tree import ON_SERVICES, PYTEST, ROOMS, ROOT

SLOW = ("browser", "reliability")
NO_GATE = ("nightly", "benchmarks")
FILES_AT_ONCE = 25
CHILDREN = """[run]
data_file = {folder}/child
parallel = true
sigterm = true
context = ${{PYTEST_CURRENT_TEST-}}
include ={includes}
"""


def files_of(folders: Iterable[str]) -> Iterator[Path]:
    for folder in folders:
        found = ROOT / folder
        for path in [found] if found.is_file() else sorted(found.rglob("test_*.py")):
            yield path.relative_to(ROOT)


def gated(with_slow: bool) -> list[Path]:
    left_out = NO_GATE if with_slow else NO_GATE + SLOW
    return [path for path in files_of(["tests"]) if path.parts[1] not in left_out]


def record_all(*, with_slow: bool) -> None:
    record(gated(with_slow), Seen(), with_served=with_slow)
    if with_slow:
        marked = [path for path in gated(False) if "mark.services" in (ROOT / path).read_text()]
        record(marked, Seen(SEEN_ON_SERVICES), ON_SERVICES, with_served=False)


def record(files: Iterable[Path], seen: Seen, program: Sequence[str] = PYTEST, *, with_served: bool) -> None:
    """Those of these files that are not known as they are now."""
    seen.drop_if_stale()
    stale = seen.stale(files, with_served=with_served)
    if stale:
        print(f"Recording what {len(stale)} files of tests execute.", flush=True)  # noqa: T201
    for start in range(0, len(stale), FILES_AT_ONCE):
        record_some(stale[start : start + FILES_AT_ONCE], seen, program, with_served)
        print(f"  {min(start + FILES_AT_ONCE, len(stale))} of {len(stale)}", flush=True)  # noqa: T201


def record_some(files: list[Path], seen: Seen, program: Sequence[str], with_served: bool) -> None:
    with TemporaryDirectory(prefix="mutants-") as folder:
        command = [
            *(sys.executable, *program, "-q", "-p", "no:cacheprovider", "-p", "tools.mutants.recording"),
            *(f"--mutants-data={folder}/coverage", f"--mutants-seen={seen.path}"),
        ]
        more: dict[str, str] = {}
        if with_served:
            command.append("--mutants-served")
            # Read by each Python that a test starts, through the .pth file of coverage.
            children = Path(folder, "children.ini")
            includes = "".join(f"\n    {ROOT}/{room}/*" for room in ROOMS)
            children.write_text(CHILDREN.format(folder=folder, includes=includes))
            more = {"COVERAGE_PROCESS_START": str(children)}
        subprocess.run(  # noqa: S603
            [*command, *map(str, files)],
            cwd=ROOT,
            env=os.environ | more,
            check=False,
            stdout=subprocess.DEVNULL,
        )
