"""The usage of accounts, for display: counted in memory and written now and then; also which accounts are
near a limit."""

import asyncio
import contextlib
import logging
import time
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from asgiref.sync import async_to_sync
from django.db.models import Case, F, Model, Q, Value, When
from django.db.models.functions import Greatest

from accounts.keys.caller import of_keys
from accounts.models import MINUTE_S, AiUsage, Minute, Usage, UsageCounts
from accounts.open_streams.registry import open_streams
from core.background import BackgroundLoop
from core.database import UNANSWERED
from core.fault_log import LastingFault
from core.threads import in_thread

# What accounts use and when keys were last used: counted in memory first, then in one write for many.
logger = logging.getLogger(__name__)
PRUNE_EVERY_S = 3600
RECORD_USE_S = 15

# The most minutes of accounts that wait while the database is away; later ones are lost.
MOST_WAITING = 50_000


class UsageBuffer:
    """A process that is killed loses what was used in its last seconds."""

    def __init__(self) -> None:
        self._counts: dict[Minute, UsageCounts] = {}
        self._minute = 0
        self._requests: defaultdict[int, int] = defaultdict(int)
        """Of that minute, by account."""
        self._prune_at = 0.0

    def note_request(self, account_id: int) -> None:
        minute = time.time() // MINUTE_S
        if minute != self._minute:
            self._fold()
            self._minute = int(minute)
        self._requests[account_id] += 1

    def note_stream(self, account_id: int) -> None:
        self._add((account_id, int(time.time()) // MINUTE_S * MINUTE_S), UsageCounts(streams=1))

    def _fold(self) -> None:
        requests, self._requests = self._requests, defaultdict(int)
        for account_id, count in requests.items():
            self._add((account_id, self._minute * MINUTE_S), UsageCounts(requests=count))

    def _add(self, minute: Minute, used: UsageCounts) -> None:
        self._counts[minute] = self._counts.get(minute, UsageCounts()).more(used)

    async def record(self) -> None:
        self._fold()
        counts, self._counts = self._counts, {}
        if counts:
            try:
                await in_thread(Usage.objects.add, counts)
            except UNANSWERED:
                self._put_back(counts)
                raise
        if time.monotonic() >= self._prune_at:
            self._prune_at = time.monotonic() + PRUNE_EVERY_S
            await in_thread(Usage.objects.prune, datetime.now(UTC))

    def _put_back(self, counts: dict[Minute, UsageCounts]) -> None:
        if len(counts) > MOST_WAITING:
            logger.error("The usage of %d minutes is lost: the database is away for too long", len(counts))
            return
        for minute, used in counts.items():
            self._add(minute, used)


usage_buffer = UsageBuffer()

# With the 15 s between two writes, a use is stored within a minute.
WRITTEN_EVERY_S = 40.0

# A use that is known so exactly is not written again.
CLOSE = timedelta(seconds=15)
WRITTEN_AT_ONCE = 200


class LastUse:
    """When keys of one kind were last used."""

    def __init__(self, model: type[Model]) -> None:
        self._model = model
        self.at: dict[int, float] = {}
        """Uses that are not written yet, in epoch seconds, by key."""
        self._written_at: dict[int, float] = {}

    async def record(self, *, all_of_it: bool = False) -> None:
        """Write those that were not written for a while; the others wait for their turn."""
        now = time.monotonic()
        self._written_at = {key: at for key, at in self._written_at.items() if now - at < WRITTEN_EVERY_S}
        due = {key: at for key, at in self.at.items() if all_of_it or key not in self._written_at}
        if not due:
            return
        self.at = {key: at for key, at in self.at.items() if key not in due}
        try:
            await in_thread(self._write, due)
        except UNANSWERED:
            self.at = due | self.at
            raise
        self._written_at |= dict.fromkeys(due, now)

    def _write(self, due: dict[int, float]) -> None:
        """Sorted, so that two processes never wait for each other in a circle."""
        keys = sorted(due)
        for start in range(0, len(keys), WRITTEN_AT_ONCE):
            some = keys[start : start + WRITTEN_AT_ONCE]
            at = {key: datetime.fromtimestamp(due[key], UTC) for key in some}
            used_at = Case(*(When(pk=key, then=Value(at[key])) for key in some))
            # Another process may have written the same key a moment ago: one of them is enough.
            enough = Case(*(When(pk=key, then=Value(at[key] - CLOSE)) for key in some))
            is_old = Q(last_used_at=None) | Q(last_used_at__lt=enough)
            manager: Any = self._model._default_manager
            manager.filter(is_old, pk__in=some).update(last_used_at=used_at)


class UseRecorder(BackgroundLoop):
    """Writes what was used: keys, and requests and streams of accounts."""

    def __init__(self, *uses: LastUse) -> None:
        self._uses = uses
        super().__init__(
            "last use of keys",
            self.record,
            fault=LastingFault(logger, "What was used waits for the database"),
            broke="What was used could not be written",
            passing=UNANSWERED,
            before=RECORD_USE_S,
        )

    async def stop(self) -> None:
        await super().stop()
        with contextlib.suppress(*UNANSWERED):
            await self.record(all_of_it=True)

    async def record(self, *, all_of_it: bool = False) -> None:
        for use in self._uses:
            await use.record(all_of_it=all_of_it)
        await usage_buffer.record()


# Accounts that their tier is getting too small for: staff may want to speak with them.
RECENTLY = timedelta(hours=1)
NEARLY = 0.8

# Open streams are counted only for accounts that opened one within this time.
OPENED_WITHIN = timedelta(days=7)
MOST_ASKED = 500


def near_limits(now: datetime) -> set[int]:
    return short_of_requests(now) | out_of_ai_calls(now) | out_of_streams(now)


def short_of_requests(now: datetime) -> set[int]:
    """Accounts that used most of the minute's allowance, in any minute of the last hour."""
    allowed = F("account__tier__requests_per_minute") * NEARLY
    minutes = Usage.objects.filter(span="minute", starts_at__gte=now - RECENTLY)
    return set(minutes.filter(requests__gt=allowed).values_list("account_id", flat=True))


def out_of_ai_calls(now: datetime) -> set[int]:
    """Accounts of a tier without AI calls have not used them up."""
    allowed = Greatest(F("account__tier__ai_calls_per_day"), 1)
    today = AiUsage.objects.filter(day=now.astimezone(UTC).date())
    return set(today.filter(used__gte=allowed).values_list("account_id", flat=True))


def out_of_streams(now: datetime) -> set[int]:
    days = Usage.objects.filter(span="day", starts_at__gte=now - OPENED_WITHIN, streams__gt=0)
    limits = dict(days.values_list("account_id", "account__tier__streams").distinct()[:MOST_ASKED])
    opened = async_to_sync(count_open)(limits)
    return {account for account, count in opened.items() if count >= limits[account]}


async def count_open(accounts: Iterable[int]) -> dict[int, int]:
    """With keys: what pages have open counts to no tier."""
    wanted = list(accounts)
    found = await asyncio.gather(*(open_streams.of(of_keys(account)) for account in wanted))
    return {account: len(streams) for account, streams in zip(wanted, found, strict=True) if streams}
