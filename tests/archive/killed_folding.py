"""`python -m tests.archive.killed_folding FOLDER` folds a day again and again, each time killed by SIGKILL
one step later than before, until a run comes to its end. A step is a file that is opened, renamed or removed.
What it found is printed as JSON."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.programs.installation import set_up

STEPS = frozenset({"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir"})
MOST_RUNS = 400


def main() -> None:
    set_up()
    # Known to each child: importing them takes longer than folding does.
    for module in ("pyarrow.compute", "pyarrow.parquet", "tests.archive.keeping"):
        importlib.import_module(module)
    folder = Path(sys.argv[1])
    made, work = folder / "made", folder / "work"
    assert in_child(lambda: make_day(made)) == 0
    shutil.copytree(made, work)
    assert in_child(lambda: fold_in(work)) == 0
    whole = state_of(work)
    found: dict[str, Any] = {"kills": 0, "bad": [], "differ": [], "files": len(whole)}
    for step in range(1, MOST_RUNS):
        shutil.rmtree(work)
        shutil.copytree(made, work)
        assert in_child(forget_archive) == 0
        ended = in_child(lambda step=step: fold_in(work, kill_at=step))  # type: ignore[misc]
        if ended == 0:
            break
        assert ended == -signal.SIGKILL, ended
        found["kills"] += 1
        found["bad"] += [f"step {step}: {path}" for path in half_files(work, whole)]
        assert in_child(lambda: fold_in(work)) == 0
        if state_of(work) != whole:
            found["differ"].append(step)
        # Where only its journal was still to be removed, that goes with the next day's.
        if journal_of_day(work):
            assert in_child(lambda: fold_in(work, nights=2)) == 0
            if journal_of_day(work) or not whole.items() <= state_of(work).items():
                found["differ"].append(step)
    sys.stdout.write(json.dumps(found))


def in_child(act: Callable[[], None]) -> int:
    """Forked before pyarrow has a thread; negative where a signal ended it."""
    sys.stdout.flush()
    if (pid := os.fork()) == 0:
        try:
            act()
        except BaseException:  # noqa: BLE001 - the child says no more than how it ended
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def make_day(folder: Path) -> None:
    import time_machine
    from django.conf import settings
    from django.core.management import call_command

    from archive.models import Installation
    from tests.archive.keeping import DAY_MS, NEXT_MS, NIGHT, KeptEngine
    from tests.factories import make_instrument

    call_command("migrate", verbosity=0)
    settings.ARCHIVE, settings.VAR_DIR = True, folder / "var"
    for symbol in ("EURUSD", "GBPUSD"):
        make_instrument(symbol)
    # With one name, so that each run makes the same files.
    Installation.objects.begun()

    async def run() -> None:
        async with KeptEngine(folder) as kept:
            for number in range(60):
                for symbol in ("EURUSD", "GBPUSD"):
                    kept.tick(1.08 + number / 1e4, DAY_MS + number * 7_000, symbol=symbol)
            await kept.write()
            kept.tick(1.08, NEXT_MS + 1_000)
            await kept.write()

    with time_machine.travel(NIGHT.replace(day=18, minute=0), tick=False):
        asyncio.run(run())


def forget_archive() -> None:
    """As before its first file: only then is the archive told whose it is."""
    from archive.models import Installation

    Installation.objects.update(is_in_archive=False)


def journal_of_day(folder: Path) -> list[Path]:
    return list((folder / "var" / "ticks").glob("*-2026-11-18.ticks"))


def fold_in(folder: Path, kill_at: int = 0, nights: int = 1) -> None:
    from tests.archive.keeping import NIGHT, fold

    if kill_at:
        kill_self_at(kill_at, str(folder))
    fold(folder, NIGHT + timedelta(days=nights - 1))


def kill_self_at(step: int, folder: str) -> None:
    left = step

    def look(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in STEPS and str(arguments[0]).startswith(folder):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look)


def state_of(folder: Path) -> dict[str, str]:
    """The digest of each file of the archive."""
    root = folder / "archive"
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }


def half_files(folder: Path, whole: dict[str, str]) -> list[str]:
    """Under its name a file is whole, and a manifest names none that is not there."""
    found = {path: digest for path, digest in state_of(folder).items() if not path.endswith(".unfinished")}
    bad = [path for path, digest in found.items() if whole[path] != digest]
    return bad + [path for path in whole if "manifests/2026-11-18.json" in found and path not in found]


if __name__ == "__main__":
    main()
