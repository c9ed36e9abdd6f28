"""Whose allowance an analysis is counted to."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from django.db import DatabaseError

from accounts import ai_allowance
from accounts.ai_allowance import Reservation
from accounts.exceptions import AiQuotaExceeded, Overloaded
from accounts.threads import in_thread_promptly
from accounts.tiers import Caller

from .reserving import Reserving

logger = logging.getLogger(__name__)


class Payer:
    """A caller during one request, and where the account stands."""

    def __init__(self, caller: Caller, standing: ai_allowance.AiStanding) -> None:
        self.standing = standing
        self._caller = caller

    @classmethod
    async def of(cls, caller: Caller) -> Payer:
        return cls(caller, await in_thread_promptly(ai_allowance.look, *_account(caller), datetime.now(UTC)))

    @property
    def has_none_left(self) -> bool:
        return not self.standing.remaining

    def refusal(self) -> AiQuotaExceeded:
        return ai_allowance.refuse(self.standing, self._caller, datetime.now(UTC))

    @contextlib.asynccontextmanager
    async def paying(self) -> AsyncIterator[None]:
        """Counted before and not after: no crash and no crowd gets more than the day allows."""
        now = datetime.now(UTC)
        reservation = await self._reserve(now)
        if reservation is None:
            self.standing = await in_thread_promptly(ai_allowance.look, *_account(self._caller), now)
            raise self.refusal()
        self.standing = reservation.standing
        try:
            yield
        except BaseException:
            await self._take_back(reservation)
            raise

    async def _reserve(self, now: datetime) -> Reservation | None:
        reserving = Reserving(*_account(self._caller), now)
        try:
            return await in_thread_promptly(reserving.run)
        except BaseException:
            made = reserving.give_up()
            if made is not None:
                await self._take_back(made)
            raise

    async def _take_back(self, reservation: Reservation) -> None:
        try:
            self.standing = await in_thread_promptly(ai_allowance.give_back, reservation)
        except (DatabaseError, Overloaded) as error:
            logger.error("Account %d may have lost an AI call: %s", reservation.account_id, error)


def _account(caller: Caller) -> tuple[int, int]:
    return caller.account_id, caller.allowances.ai_calls
