"""The open streams of all processes, limited per account by its tier and per page."""

import asyncio
import itertools
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.keys.caller import is_of_keys, of_keys, of_pages
from accounts.models import Account
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.threads import in_reserved_thread

from .redis_slots import RedisSlots
from .stream_slots import (
    Describe,
    MemorySlots,
    OnEnd,
    OpenStream,
    Slot,
    SlotRefusal,
    read_slot_name,
    slot_place,
)

DAY = timedelta(days=1)
# Each is recorded and kept for 400 days, so an account cannot close streams without end.
MOST_CLOSED_A_DAY = 500


class TooManyClosed(Exception):
    """The account closed as many streams in a day as it may."""


@transaction.atomic
def close_stream(account: Account, path: str, opened_at: float, *, by: str) -> None:
    """Wherever it is open; `opened_at` in epoch seconds, to the microsecond."""
    Account.objects.select_for_update().get(pk=account.pk)
    closed = ControlEvent.objects.filter(
        account_id=account.pk, kind=EventKind.STREAM_CLOSED, created_at__gt=timezone.now() - DAY
    )
    if closed.count() >= MOST_CLOSED_A_DAY:
        raise TooManyClosed(
            f"You closed {MOST_CLOSED_A_DAY} streams in a day, which is the most that can be closed here."
            " Stop the program that opens them, or revoke its key, which closes them all."
        )
    ControlEvent.objects.publish(
        EventKind.STREAM_CLOSED, by=by, account=account.pk, path=path, opened_at=round(opened_at, 6)
    )


# Accounts in one query after a tier was changed.
CHUNK = 1000


class OpenStreams:
    def __init__(self) -> None:
        self._here = MemorySlots()
        self._shared: RedisSlots | None = None

    async def start(self) -> None:
        if url := settings.REDIS_URL:
            self._shared = RedisSlots(url, self._here)
            await self._shared.start()

    async def hand_over(self) -> None:
        """Before the sockets of this process are closed, so that their clients find slots elsewhere."""
        if self._shared is not None:
            await self._shared.hand_over()

    async def stop(self) -> None:
        """Streams that are still open are not notified: their sockets are being closed anyway."""
        shared, self._shared = self._shared, None
        if shared is not None:
            await shared.stop()
        self._here = MemorySlots()

    async def claim(
        self,
        counted_under: str,
        path: str,
        limit: int,
        *,
        takeover: bool = False,
        on_end: OnEnd,
        describe: Describe | None = None,
    ) -> Slot | SlotRefusal:
        """A slot, unless all are taken; with takeover the oldest ends, on the same path if there is one.

        `on_end` is called at most once, after this has returned and before the slot is released. `describe`
        is called when a page shows the stream, and after `note_change`.
        """
        leave = (self._shared or self._here).release
        slot = Slot(OpenStream(counted_under, path, time.time()), limit, on_end, leave, describe)
        if self._shared is None:
            return self._here.claim(slot, takeover=takeover) or slot
        refusal = await self._shared.claim(slot, takeover=takeover)
        if refusal is None:
            self.note_change(slot)
        return refusal or slot

    def note_change(self, slot: Slot) -> None:
        """The details of the stream have changed."""
        if self._shared is not None:
            self._shared.details.note(slot.number)

    async def enforce(self, counted_under: str, limit: int) -> None:
        """The newest beyond the limit end, in whichever process they are."""
        for slot in self._here.of(counted_under):
            slot.limit = limit
        if await self._ask("enforce", counted_under, limit) is None:
            self._here.enforce(counted_under, limit)

    async def follow(self, facts: dict[str, Any]) -> None:
        """After an account or a tier was changed. Each process asks for the accounts whose keys it serves."""
        changed = facts.get("account")
        accounts = [int(caller) for caller in self._here.callers() if is_of_keys(caller)]
        served = [account for account in accounts if changed in (None, account)]
        for start in range(0, len(served), CHUNK):
            limits = await in_reserved_thread(limits_of, served[start : start + CHUNK])
            await asyncio.gather(*itertools.starmap(self.enforce, limits))

    def close(self, facts: dict[str, Any]) -> None:
        """Closes the stream, in whichever process it is, at the request of its account."""
        account = facts["account"]
        for slot in (*self._here.of(of_keys(account)), *self._here.of(of_pages(account))):
            stream = slot.stream
            if (stream.path, round(stream.opened_at, 6)) == (facts["path"], facts["opened_at"]):
                slot.end("stream_closed")

    async def of(self, counted_under: str) -> list[OpenStream]:
        """Over all processes; of this one alone while Redis does not answer."""
        names = await self._ask("of", counted_under)
        if names is None or self._shared is None:
            return [slot.shown() for slot in self._here.of(counted_under)]
        details = await self._shared.details.of(map(slot_place, names))
        return [read_slot_name(name, counted_under, each) for name, each in zip(names, details, strict=True)]

    async def of_account(self, account_id: int) -> list[OpenStream]:
        """Those of its keys, then those of its pages."""
        keys, pages = await asyncio.gather(self.of(of_keys(account_id)), self.of(of_pages(account_id)))
        return [*keys, *pages]

    async def count(self) -> int:
        count: int | None = await self._ask("count")
        return len(self._here) if count is None else count

    async def _ask(self, *asks: Any) -> Any:
        """None where this process counts alone."""
        return None if self._shared is None else await self._shared.ask(*asks)


def limits_of(accounts: Iterable[int]) -> list[tuple[str, int]]:
    found = Account.objects.filter(pk__in=accounts).values_list("pk", "tier__streams")
    return [(of_keys(account), limit) for account, limit in found]


open_streams = OpenStreams()
