"""The AI calls of an account: so many a UTC day, counted in the database, exactly."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta

import msgspec
from django.db.models import F

from accounts.models import AiUsage
from core.contract.errors import AiQuotaExceeded
from core.daily_allowance import spend
from core.times import hours_and_minutes


class AiCallStanding(msgspec.Struct, frozen=True):
    """Where an account stands on one UTC day."""

    day: date
    limit: int
    used: int

    @classmethod
    def of(cls, account_id: int, limit: int, now: datetime) -> AiCallStanding:
        return cls(now.date(), limit, AiUsage.used_on(account_id, now.date()))

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
    """A call that was counted before it is made. A crash before it is made uses it up."""

    account_id: int
    standing: AiCallStanding

    @classmethod
    def make(cls, account_id: int, limit: int, now: datetime) -> AiCallReservation | None:
        """None where the day has no room for it."""
        if not spend(AiUsage.objects, limit, account_id=account_id, day=now.date()):
            return None
        return cls(account_id, AiCallStanding.of(account_id, limit, now))

    def give_back(self) -> AiCallStanding:
        """The call came to nothing. It is given back to the day that it was counted on."""
        of_day = AiUsage.objects.filter(account_id=self.account_id, day=self.standing.day)
        of_day.filter(used__gt=0).update(used=F("used") - 1)
        used = AiUsage.used_on(self.account_id, self.standing.day)
        return msgspec.structs.replace(self.standing, used=used)
