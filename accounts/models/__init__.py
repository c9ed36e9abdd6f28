"""Who you are, what opens the API for you, and what you used of it."""

from core.events.outbox import ControlEvent as ControlEvent

from .accounts import TIER_LIMITS, Account, Attempt, Tier, TierRequest, User
from .keys import ApiKey, Key, PageSession
from .requests import LONGEST_REASON, RequestState, StaffRequest, request_constraints
from .usage import MINUTE_S, AiUsage, Minute, Usage, UsageCounts, VisitorAiUsage
from .usernames import LOOKS_LIKE_ANOTHER, PSEUDONYM, PUBLISHER, RESERVED, fault_of_new

__all__ = [
    "LONGEST_REASON",
    "LOOKS_LIKE_ANOTHER",
    "MINUTE_S",
    "PSEUDONYM",
    "PUBLISHER",
    "RESERVED",
    "TIER_LIMITS",
    "Account",
    "AiUsage",
    "ApiKey",
    "Attempt",
    "Key",
    "Minute",
    "PageSession",
    "RequestState",
    "StaffRequest",
    "Tier",
    "TierRequest",
    "Usage",
    "UsageCounts",
    "User",
    "VisitorAiUsage",
    "fault_of_new",
    "request_constraints",
]
