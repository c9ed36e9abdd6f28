"""Charges an analysis to the caller's allowance of AI calls, even if the database answers too late."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from accounts.keys import Caller
from accounts.limits import AiCallReservation, AiCallStanding, Whose
from core.contract.errors import AiQuotaExceeded
from core.database import UNANSWERED
from core.threads import in_thread_promptly

logger = logging.getLogger(__name__)


class AiCallCharge:
    """The caller of one request, and what is left of the AI calls."""

    def __init__(self, caller: Caller, standing: AiCallStanding) -> None:
        self.standing = standing
        self._caller = caller

    @classmethod
    async def of(cls, caller: Caller) -> AiCallCharge:
        return cls(
            caller, await in_thread_promptly(AiCallStanding.of, *_allowance(caller), datetime.now(UTC))
        )

    @property
    def has_none_left(self) -> bool:
        return not self.standing.remaining

    def refusal(self) -> AiQuotaExceeded:
        return self.standing.refusal(self._caller.allowances.tier, datetime.now(UTC))

    @contextlib.asynccontextmanager
    async def reserved(self) -> AsyncIterator[None]:
        """The call is counted in advance, so that neither crashes nor crowds get more than the day allows."""
        now = datetime.now(UTC)
        reservation = await self._reserve(now)
        if reservation is None:
            self.standing = await in_thread_promptly(AiCallStanding.of, *_allowance(self._caller), now)
            raise self.refusal()
        self.standing = reservation.standing
        try:
            yield
        except BaseException:
            await self._take_back(reservation)
            raise

    async def _reserve(self, now: datetime) -> AiCallReservation | None:
        reserving = CancellableReservation(*_allowance(self._caller), now)
        try:
            return await in_thread_promptly(reserving.run)
        except BaseException:
            made = reserving.give_up()
            if made is not None:
                await self._take_back(made)
            raise

    async def _take_back(self, reservation: AiCallReservation) -> None:
        try:
            self.standing = await in_thread_promptly(reservation.give_back)
        except UNANSWERED as error:
            logger.error("%s may have lost an AI call: %s", reservation.whose, error)


def _allowance(caller: Caller) -> tuple[Whose, int]:
    return caller.ai_calls_of, caller.allowances.ai_calls


class CancellableReservation:
    def __init__(self, whose: Whose, limit: int, now: datetime) -> None:
        self._asked = whose, limit, now
        self._lock = threading.Lock()
        self._made: AiCallReservation | None = None
        self._is_given_up = False

    def run(self) -> AiCallReservation | None:
        """Runs in a thread."""
        reservation = AiCallReservation.make(*self._asked)
        with self._lock:
            if not self._is_given_up:
                self._made = reservation
                return reservation
        if reservation is not None:
            reservation.give_back()
        return None

    def give_up(self) -> AiCallReservation | None:
        """Returns what has been counted already; a call that is counted later is given back at once."""
        with self._lock:
            self._is_given_up = True
            return self._made
