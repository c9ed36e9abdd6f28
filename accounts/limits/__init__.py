"""What an account may use: requests a minute, AI calls a day, and which tier says so."""

from .ai_calls import AiCallReservation, AiCallStanding, Whose
from .throttling import throttle
from .window import MemoryWindow

__all__ = ["AiCallReservation", "AiCallStanding", "MemoryWindow", "Whose", "throttle"]
