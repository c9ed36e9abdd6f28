"""Starts the nightly work beside the engine, in a process of its own: the engine's loop waits for nothing."""

import asyncio
import contextlib
import logging
import sys
from datetime import date

from core.background import BackgroundLoop
from core.clock import machine_ms
from core.fault_log import LastingFault
from core.program.commands import IS_CHECKOUT, ROOT
from core.times import moment

from .fold import over

logger = logging.getLogger(__name__)
LOOK_S = 30.0
RETRY_S = 300.0
# What it says last is its reason.
MOST_TOLD = 300


class NotFolded(Exception):
    """The nightly work did not end well; the reason is a sentence."""


class Nightly:
    """Once a day, and until it succeeds."""

    def __init__(self) -> None:
        self.done: date | None = None
        """The day up to which everything is folded."""
        self.fault = ""
        self._loop = BackgroundLoop(
            "archive folding",
            self.look,
            fault=LastingFault(logger, "The files of the archive are not made", logging.ERROR),
            broke="The files of the archive could not be made",
            passing=(NotFolded, OSError),
            before=LOOK_S,
            again=RETRY_S,
        )
        self.start, self.stop = self._loop.start, self._loop.stop

    async def look(self) -> None:
        day = over(moment(machine_ms()))
        if day == self.done:
            return
        try:
            await run_apart()
        except (NotFolded, OSError) as error:
            self.fault = str(error)
            raise
        self.done, self.fault = day, ""


async def run_apart() -> None:
    program = [str(ROOT / "manage.py")] if IS_CHECKOUT else ["-m", "tickwire_server"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *program, "fold_archive"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, said = await process.communicate()
    finally:
        # When this is cancelled: it does the same again the next time.
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    lines = said.decode("utf-8", "replace").strip().splitlines()
    why = (lines.pop() if lines else f"it ended with {process.returncode}") if process.returncode else ""
    # Lines of the log, in the form in which this process writes its own.
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    if process.returncode:
        raise NotFolded(why.removeprefix("CommandError: ")[:MOST_TOLD])


nightly = Nightly()
