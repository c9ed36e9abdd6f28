"""Counting an AI call where the database may answer too late: what nobody waits for is given back."""

from __future__ import annotations

import threading
from datetime import datetime

from accounts import ai_allowance
from accounts.ai_allowance import Reservation


class Reserving:
    def __init__(self, account_id: int, limit: int, now: datetime) -> None:
        self._asked = account_id, limit, now
        self._lock = threading.Lock()
        self._made: Reservation | None = None
        self._is_given_up = False

    def run(self) -> Reservation | None:
        """In a thread."""
        reservation = ai_allowance.reserve(*self._asked)
        with self._lock:
            if not self._is_given_up:
                self._made = reservation
                return reservation
        if reservation is not None:
            ai_allowance.give_back(reservation)
        return None

    def give_up(self) -> Reservation | None:
        """What had been counted already; what is counted later goes back by itself."""
        with self._lock:
            self._is_given_up = True
            return self._made
