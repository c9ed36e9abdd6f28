"""What an account may use: requests a minute, AI calls a day, and which tier says so."""

from .ai_calls import (
    AiCallReservation,
    AiCallStanding,
    ai_quota_refusal,
    give_back_ai_call,
    look_at_ai_calls,
    reserve_ai_call,
)
from .throttling import throttle
from .window import MemoryWindow

__all__ = [
    "AiCallReservation",
    "AiCallStanding",
    "MemoryWindow",
    "ai_quota_refusal",
    "give_back_ai_call",
    "look_at_ai_calls",
    "reserve_ai_call",
    "throttle",
]
