"""Counting what accounts use, off the path of their requests: in memory first, then in one write for many."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime

from django.db import DatabaseError

from accounts.models import MINUTE_S, Minute, Usage, UsageCounts
from core.contract.errors import Overloaded
from core.threads import in_thread

logger = logging.getLogger(__name__)
PRUNE_EVERY_S = 3600

# Minutes of accounts that wait while the database is away; then the count of those that come is lost.
MOST_WAITING = 50_000


class UsageBuffer:
    """A process that is killed takes the last seconds of it along."""

    def __init__(self) -> None:
        self._spent: dict[Minute, UsageCounts] = {}
        self._prune_at = 0.0

    def note_request(self, account_id: int) -> None:
        self._note(account_id, UsageCounts(requests=1))

    def note_stream(self, account_id: int) -> None:
        self._note(account_id, UsageCounts(streams=1))

    def _note(self, account_id: int, used: UsageCounts) -> None:
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

    async def write(self, spent: dict[Minute, UsageCounts]) -> None:
        await in_thread(Usage.objects.add, spent)

    def _put_back(self, spent: dict[Minute, UsageCounts]) -> None:
        if len(spent) > MOST_WAITING:
            logger.error("The usage of %d minutes is lost: the database is away for too long", len(spent))
            return
        for minute, used in self._spent.items():
            spent[minute] = spent.get(minute, UsageCounts()).more(used)
        self._spent = spent


usage_buffer = UsageBuffer()
