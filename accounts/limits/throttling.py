"""The windows in which requests and AI calls are counted, and the refusals they lead to."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec
from django.conf import settings
from django.db.models import F, Manager

from accounts.keys.caller import Caller
from accounts.models import AiUsage, VisitorAiUsage
from core.addresses import network_of
from core.contract.errors import AiQuotaExceeded, RateLimitExceeded
from core.database import spend
from core.times import hours_and_minutes

from .redis_window import RedisWindow
from .window import MemoryWindow, Standing, Then

FAILURES_PER_MINUTE = 60


def window_of(caller: Caller) -> str:
    return f"account:{caller.counted_under}"


class Throttle:
    """The windows of this process, or its share in those of all processes."""

    def __init__(self) -> None:
        self.window = MemoryWindow()

    async def open(self) -> None:
        if url := settings.REDIS_URL:
            self.window = RedisWindow(url)

    async def close(self) -> None:
        await self.window.close()
        self.window = MemoryWindow()

    async def admit(self, caller: Caller) -> Standing:
        return await self.window.ask(window_of(caller), caller.allowances.requests, cost=1)

    def admit_now(self, caller: Caller) -> Standing | None:
        """None where the answer comes from Redis."""
        return self.window.admit_now(window_of(caller), caller.allowances.requests)

    def admit_later(self, caller: Caller, then: Then) -> None:
        """Calls it from the loop, once the standing is known, and not before this has returned."""
        self.window.admit_later(window_of(caller), caller.allowances.requests, then)

    async def look(self, caller: Caller) -> Standing:
        return await self.window.ask(window_of(caller), caller.allowances.requests, cost=0)

    async def note_failure(self, address: str) -> Standing:
        """A request or a socket without a valid key; valid ones from the same address never pass here."""
        return await self.window.ask(f"failures:{network_of(address)}", FAILURES_PER_MINUTE, cost=1)

    async def count_failure(self, address: str, key: str = "API key") -> None:
        standing = await self.note_failure(address)
        if not standing.admitted:
            raise RateLimitExceeded(
                f"Too many requests without a valid {key} from this address. "
                f"Try again in {standing.wait_s} s.",
                retry_after=standing.wait_s,
            )


throttle = Throttle()


def rate_limit_refusal(standing: Standing, caller: Caller) -> RateLimitExceeded:
    who = (
        "This site allows its pages"
        if caller.is_page
        else f"The {caller.allowances.tier.title()} tier allows"
    )
    wait_s = standing.wait_s
    return RateLimitExceeded(
        f"{who} {standing.limit} requests a minute. Try again in {wait_s} s.", retry_after=wait_s
    )


# AI calls: a number per UTC day for an account, or for all visitors from a network, counted exactly in the
# database.
Whose = int | str
"""An account, or the network of visitors."""


def uses_of(whose: Whose, day: date) -> tuple[Manager[Any], dict[str, Any]]:
    """The table, and which row of it."""
    if isinstance(whose, int):
        return AiUsage.objects, {"account_id": whose, "day": day}
    return VisitorAiUsage.objects, {"network": whose, "day": day}


def used_on(whose: Whose, day: date) -> int:
    uses, which = uses_of(whose, day)
    return uses.filter(**which).values_list("used", flat=True).first() or 0


class AiCallStanding(msgspec.Struct, frozen=True):
    """The calls of one UTC day."""

    day: date
    limit: int
    used: int

    @classmethod
    def of(cls, whose: Whose, limit: int, now: datetime) -> AiCallStanding:
        return cls(now.date(), limit, used_on(whose, now.date()))

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.used)

    @property
    def resets_at(self) -> datetime:
        return datetime.combine(self.day + timedelta(days=1), datetime.min.time(), UTC)

    @property
    def reset(self) -> int:
        """Epoch seconds of the midnight that ends the day."""
        return int(self.resets_at.timestamp())

    def headers(self) -> dict[str, str]:
        return {
            "X-AI-Limit": str(self.limit),
            "X-AI-Remaining": str(self.remaining),
            "X-AI-Reset": str(self.reset),
        }

    def refusal(self, tier: str, now: datetime) -> AiQuotaExceeded:
        wait_s, tier = math.ceil((self.resets_at - now).total_seconds()), tier.title()
        if self.limit:
            calls = "1 AI call" if self.limit == 1 else f"{self.limit} AI calls"
            message = (
                f"The {tier} tier allows {calls} a day, and today's are used up. "
                f"New ones begin at 00:00 UTC, in {hours_and_minutes(wait_s)}; cached answers remain free."
            )
        else:
            message = f"The {tier} tier has no AI calls. Ask for another tier; cached answers are free."
        return AiQuotaExceeded(message, retry_after=wait_s)


class AiCallReservation(msgspec.Struct, frozen=True):
    """A call that is counted before it is made, so a crash in between uses it up."""

    whose: Whose
    standing: AiCallStanding

    @classmethod
    def make(cls, whose: Whose, limit: int, now: datetime) -> AiCallReservation | None:
        """None where the day has no room for it."""
        uses, which = uses_of(whose, now.date())
        return cls(whose, AiCallStanding.of(whose, limit, now)) if spend(uses, limit, **which) else None

    def give_back(self) -> AiCallStanding:
        """The call failed: give it back to the day on which it was counted."""
        uses, which = uses_of(self.whose, self.standing.day)
        uses.filter(**which, used__gt=0).update(used=F("used") - 1)
        return msgspec.structs.replace(self.standing, used=used_on(self.whose, self.standing.day))
