"""Clients that read too slowly: what they are due waits with a bound, and they come back or are given up."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from .backlog import Backlog, LatestBacklog

if TYPE_CHECKING:
    from .hub import Hub
    from .seat import Seat

logger = logging.getLogger(__name__)

SWEEP_S = 0.5


class SlowSide:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.seats: dict[Seat, None] = {}
        self.conflating: dict[Seat, LatestBacklog] = {}
        self.given_up = 0
        self._is_sweeping = False

    def hold(self, seat: Seat) -> None:
        """Called from inside a write: from the next one on, frames wait here."""
        kind = LatestBacklog if seat.wants_latest else Backlog
        backlog = seat.backlog = kind(self._hub.loop.time(), seat.connection.waiting)
        seat.redirect(seat.put)
        self.seats[seat] = None
        if isinstance(backlog, LatestBacklog):
            self._hub.settle()
            if seat.is_open:
                self.conflating[seat] = backlog
                seat.group.renew()
        if not self._is_sweeping:
            self._is_sweeping = True
            self._hub.loop.call_later(SWEEP_S, self._sweep)

    def release(self, seat: Seat) -> None:
        """Nothing waits any more."""
        if seat.is_conflating:
            # What the others of its group are still due, it has had.
            self._hub.settle()
        seat.attach()
        self.drop(seat)

    def drop(self, seat: Seat) -> None:
        self.seats.pop(seat, None)
        self.conflating.pop(seat, None)
        seat.backlog = None
        seat.group.renew()
        seat.wake()

    def give_up(self, seat: Seat) -> None:
        if seat.is_open:
            self.given_up += 1
            logger.info("A client reads too slowly and is given up")
            self._hub.leave(seat)
            self._hub.loop.call_soon(seat.on_slow)

    def _sweep(self) -> None:
        now = self._hub.loop.time()
        for seat in tuple(self.seats):
            if seat.backlog is not None and seat.backlog.is_stuck(now, seat.connection.waiting):
                self.give_up(seat)
        self._is_sweeping = bool(self.seats)
        if self._is_sweeping:
            self._hub.loop.call_later(SWEEP_S, self._sweep)
