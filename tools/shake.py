"""`make shake`: the tests that start a process or wait, many times beside four busy processes. One that fails
once fails by chance, and is to be mended as a class. A night takes a slice of the files: ten nights take all.
ONLY="path path" names files or folders instead; TIMES=3 is a shorter look."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from tests.nightly.figures import note

ROOT = Path(__file__).parents[1]
BUSY, TIMES, SLICES = 4, 30, 10


def main() -> int:
    times = int(os.environ.get("TIMES") or TIMES)
    number = int(os.environ.get("SLICE") or datetime.now(UTC).toordinal() % SLICES)
    if only := os.environ.get("ONLY", "").split():
        files, what = only, " ".join(only)
    else:
        files = slice_of(waiting_files(), number)
        what = f"slice {number} of {SLICES}, {len(files)} files"
    failures: Counter[str] = Counter()
    with busy(BUSY):
        for round_number in range(1, times + 1):
            failures.update(failed(files))
            say(f"{what}: round {round_number} of {times}, {failures.total()} failures")
    for name, count in failures.most_common():
        say(f"{count:3} × {name}")
    measured = ", ".join(f"{count} × {name}" for name, count in failures.most_common()) or "0"
    note(f"Failures in {times} rounds, {what}", "0", measured, held=not failures)
    return bool(failures)


def waiting_files() -> list[str]:
    """Those marked so, and all that runs against browsers and killed processes."""
    every = sorted(ROOT.glob("tests/**/test_*.py"))
    inside = [ROOT / "tests" / name for name in ("browser", "reliability")]
    nightly = ROOT / "tests" / "nightly"
    return [
        str(path.relative_to(ROOT))
        for path in every
        if nightly not in path.parents
        and (any(each in path.parents for each in inside) or "pytest.mark.served" in path.read_text())
    ]


def slice_of(files: Sequence[str], number: int) -> list[str]:
    return list(files[number::SLICES])


def failed(files: Sequence[str]) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="tickwire-shake-") as folder:
        report = Path(folder) / "report.xml"
        words = [sys.executable, "-m", "pytest", "-n", "3", "-q", "--no-loadscope-reorder"]
        subprocess.run([*words, f"--junitxml={report}", *files], cwd=ROOT, check=False)  # noqa: S603
        if not report.exists():
            return ["the run itself"]
        cases = ElementTree.parse(report).iter("testcase")  # noqa: S314 - pytest has just written it
        return [
            f"{case.get('classname')}::{case.get('name')}"
            for case in cases
            if case.find("failure") is not None or case.find("error") is not None
        ]


@contextmanager
def busy(count: int) -> Iterator[None]:
    with ExitStack() as running:
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", "while True: pass"])  # noqa: S603
            running.callback(process.wait)
            running.callback(process.kill)
        yield


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
