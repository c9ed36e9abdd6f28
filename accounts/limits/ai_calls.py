"""The AI calls of an account: so many a UTC day, counted in the database, exactly."""

import math
from datetime import UTC, date, datetime, timedelta

import msgspec
from django.db.models import F

from accounts.keys.caller import Caller
from accounts.models import AiUsage
from core.contract.errors import AiQuotaExceeded
from core.database import spend


class AiCallStanding(msgspec.Struct, frozen=True):
    """Where an account stands on one UTC day."""

    day: date
    limit: int
    used: int

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


class AiCallReservation(msgspec.Struct, frozen=True):
    """A call that was counted before it is made."""

    account_id: int
    standing: AiCallStanding


def look_at_ai_calls(account_id: int, limit: int, now: datetime) -> AiCallStanding:
    return AiCallStanding(now.date(), limit, AiUsage.used_on(account_id, now.date()))


def reserve_ai_call(account_id: int, limit: int, now: datetime) -> AiCallReservation | None:
    """Count a call, if the day has room for it. A crash before it is made uses it up."""
    if not spend(AiUsage.objects, limit, account_id=account_id, day=now.date()):
        return None
    return AiCallReservation(account_id, look_at_ai_calls(account_id, limit, now))


def give_back_ai_call(reservation: AiCallReservation) -> AiCallStanding:
    """The call came to nothing. It is given back to the day that it was counted on."""
    day = reservation.standing.day
    AiUsage.objects.filter(account_id=reservation.account_id, day=day, used__gt=0).update(used=F("used") - 1)
    used = AiUsage.used_on(reservation.account_id, day)
    return msgspec.structs.replace(reservation.standing, used=used)


def ai_quota_refusal(standing: AiCallStanding, caller: Caller, now: datetime) -> AiQuotaExceeded:
    wait_s = math.ceil((standing.resets_at - now).total_seconds())
    tier = caller.allowances.tier.title()
    if standing.limit:
        calls = "1 AI call" if standing.limit == 1 else f"{standing.limit} AI calls"
        message = (
            f"The {tier} tier allows {calls} a day, and today's are used up. "
            f"New ones begin at 00:00 UTC, in {wait_s} s; answers that are cached stay free."
        )
    else:
        message = f"The {tier} tier has no AI calls. Ask for another tier; answers that are cached are free."
    return AiQuotaExceeded(message, retry_after=wait_s)
