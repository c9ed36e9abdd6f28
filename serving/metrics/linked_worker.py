"""A worker as its supervisor hears of it: what it said last, and whether it says it now."""

import asyncio
import contextlib
from typing import NamedTuple

from .frames import ASK, frame
from .snapshots import Snapshot


class LinkedWorker:
    def __init__(self, number: int, writer: asyncio.StreamWriter) -> None:
        self.number, self.writer = number, writer
        self.last: Snapshot | None = None
        """None until it has started: its link is there before its process."""
        self._asked: asyncio.Future[Snapshot | None] | None = None

    def ask(self) -> asyncio.Future[Snapshot | None]:
        """None if it ends instead. Whoever asks meanwhile shares the answer."""
        if self._asked is None:
            self._asked = asyncio.get_running_loop().create_future()
            with contextlib.suppress(OSError):
                self.writer.write(frame(ASK))
        return self._asked

    def hear(self, told: Snapshot) -> None:
        self.last = told
        self._answer(told)

    def end(self) -> None:
        self._answer(None)
        self.writer.close()

    def _answer(self, told: Snapshot | None) -> None:
        if self._asked is not None:
            self._asked.set_result(told)
            self._asked = None


class Answers(NamedTuple):
    told: dict[str, Snapshot]
    """By the number of the worker."""
    silent: list[str]
    """Those that have started and did not answer in time."""


async def ask_all(links: list[LinkedWorker], within_s: float | None) -> Answers:
    """One that has not started yet is not waited for."""
    asked = [(str(worker.number), worker.ask()) for worker in links if worker.last is not None]
    if asked:
        await asyncio.wait([answer for _, answer in asked], timeout=within_s)
    # A successor comes after the one that it replaces, and has the same number.
    told = {number: answer.result() for number, answer in asked if answer.done()}
    return Answers(
        {number: snapshot for number, snapshot in told.items() if snapshot is not None},
        [number for number, answer in asked if not answer.done()],
    )
