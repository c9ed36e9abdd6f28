"""What an account may use: requests a minute, AI calls a day, and which tier says so."""

from .throttling import AiCallReservation, AiCallStanding, Whose, throttle
from .window import MemoryWindow

__all__ = ["AiCallReservation", "AiCallStanding", "MemoryWindow", "Whose", "throttle"]
