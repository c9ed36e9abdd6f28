"""Counting what accounts use, off the path of their requests: in memory first, then in one write for many."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime

from django.db import DatabaseError

from .exceptions import Overloaded
from .models import Usage
from .spent import MINUTE_S, Spent
from .threads import in_thread
from .usage import Minute

logger = logging.getLogger(__name__)

PRUNE_EVERY_S = 3600
# Minutes of accounts that wait while the database is away; then the count of those that come is lost.
MOST_WAITING = 50_000


class UsageTally:
    """A process that is killed takes the last seconds of it along."""

    def __init__(self) -> None:
        self._spent: dict[Minute, Spent] = {}
        self._prune_at = 0.0

    def note_request(self, account_id: int) -> None:
        self._note(account_id, Spent(requests=1))

    def note_stream(self, account_id: int) -> None:
        self._note(account_id, Spent(streams=1))

    def _note(self, account_id: int, used: Spent) -> None:
        minute = account_id, int(time.time()) // MINUTE_S * MINUTE_S
        before = self._spent.get(minute)
        self._spent[minute] = used if before is None else before.more(used)

    async def record(self) -> None:
        spent, self._spent = self._spent, {}
        if spent:
            try:
                await self.write(spent)
            except (DatabaseError, Overloaded):
                self._put_back(spent)
                raise
        if time.monotonic() >= self._prune_at:
            self._prune_at = time.monotonic() + PRUNE_EVERY_S
            await in_thread(Usage.objects.prune, datetime.now(UTC))

    async def write(self, spent: dict[Minute, Spent]) -> None:
        await in_thread(Usage.objects.add, spent)

    def _put_back(self, spent: dict[Minute, Spent]) -> None:
        if len(spent) > MOST_WAITING:
            logger.error("The usage of %d minutes is lost: the database is away for too long", len(spent))
            return
        for minute, used in self._spent.items():
            spent[minute] = spent.get(minute, Spent()).more(used)
        self._spent = spent


usage = UsageTally()
