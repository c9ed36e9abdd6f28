"""Who you are, what opens the API for you, and what you used of it."""

from core.events.outbox import ControlEvent as ControlEvent

from .accounts import LONGEST_REASON, TIER_LIMITS, Account, Attempt, Tier, TierRequest, User
from .keys import ApiKey, Key, PageSession
from .usage import MINUTE_S, AiUsage, Minute, Usage, UsageCounts
from .usernames import PSEUDONYM, PSEUDONYMS, PUBLISHER

__all__ = [
    "LONGEST_REASON",
    "MINUTE_S",
    "PSEUDONYM",
    "PSEUDONYMS",
    "PUBLISHER",
    "TIER_LIMITS",
    "Account",
    "AiUsage",
    "ApiKey",
    "Attempt",
    "Key",
    "Minute",
    "PageSession",
    "Tier",
    "TierRequest",
    "Usage",
    "UsageCounts",
    "User",
]
