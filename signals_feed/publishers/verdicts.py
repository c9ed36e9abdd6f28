"""The judge's verdict on each fill and each gain, computed once. Each process keeps it in memory alone: an
intruder who writes a false result into the database could write a false verdict beside it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from itertools import islice
from threading import Lock
from uuid import UUID

from core.background import BackgroundLoop
from core.database import UNANSWERED
from core.fault_log import LastingFault
from core.threads import in_thread
from signals_feed.result_checks import Records

from .stored_events import StoredSignal

logger = logging.getLogger(__name__)
# An answer that takes up more leaves the others to the background, which rests three times as long as it
# judges: after a start there may be a hundred thousand, and requests need the same interpreter.
AT_ONCE = 500
BATCH, RESTS, LOOK_EVERY_S = 50, 3, 0.5


class Verdicts:
    def __init__(self) -> None:
        self._known: dict[int, bool] = {}
        """By the hash of the row, so that one that was altered is judged again."""
        self._waiting: dict[int, UUID] = {}
        self._lock = Lock()
        self._loop = BackgroundLoop(
            "verdicts",
            self.judge_waiting,
            fault=LastingFault(logger, "Results wait to be judged"),
            broke="Results could not be judged",
            passing=UNANSWERED,
            after=LOOK_EVERY_S,
        )
        self.start, self.stop = self._loop.start, self._loop.stop

    def of(self, row: StoredSignal) -> bool | None:
        """Whether its record holds; None as long as it is not judged."""
        return self._known.get(hash(row))

    def knows(self, hashes: set[int]) -> bool:
        return hashes <= self._known.keys()

    def know(self, found: Mapping[int, bool]) -> None:
        self._known |= found

    def judge(self, rows: Sequence[StoredSignal]) -> None:
        for start in range(0, len(rows), BATCH):
            self._judge({hash(row): row.key for row in rows[start : start + BATCH]})

    def judge_later(self, rows: Sequence[StoredSignal]) -> None:
        with self._lock:
            self._waiting |= {hash(row): row.key for row in rows}

    @property
    def is_at_work(self) -> bool:
        return bool(self._waiting)

    async def judge_waiting(self) -> None:
        while self._waiting:
            began_s = time.perf_counter()
            await in_thread(self._judge_some)
            await asyncio.sleep(RESTS * (time.perf_counter() - began_s))

    def _judge_some(self) -> None:
        with self._lock:
            some = dict(islice(self._waiting.items(), BATCH))
        self._judge(some)
        with self._lock:
            for each in some:
                del self._waiting[each]

    def _judge(self, asked: Mapping[int, UUID]) -> None:
        records = Records(list(asked.values()))
        self.know({each: not records.fault(pk) for each, pk in asked.items()})


verdicts = Verdicts()


class Judging:
    """That of one answer."""

    def __init__(self, at_once: int | None = None) -> None:
        self._left = AT_ONCE if at_once is None else at_once

    def judge(self, rows: Sequence[StoredSignal]) -> None:
        unknown = [row for row in rows if verdicts.of(row) is None]
        verdicts.judge(unknown[: self._left])
        verdicts.judge_later(unknown[self._left :])
        self._left = max(0, self._left - len(unknown))
