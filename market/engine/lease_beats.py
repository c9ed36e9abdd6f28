"""The lease is kept from a thread of its own, because an event loop that is busy for a moment is no reason
for another engine to take over. One that has stopped to turn is."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable

from django.db import connection

from core.database import UNANSWERED
from core.deadlines import patient
from core.fault_log import LastingFault
from market.store.lease import Lease

lease_waits = LastingFault(logging.getLogger(__name__), "The lease waits for the database")
LOOK_S = 0.5

# What is written each second beats as well.
BEAT_AFTER_S = 1.5
STANDS_STILL_S = patient(3.0)


class LeaseBeats:
    def __init__(self, lease: Lease, on_loss: Callable[[], None]) -> None:
        self._lease, self._on_loss = lease, on_loss
        self.turned_s = 0.0
        """When the loop turned last."""
        self._timer: asyncio.TimerHandle | None = None
        self._ended = threading.Event()

    def start(self) -> None:
        loop, self._ended = asyncio.get_running_loop(), threading.Event()
        self._turn(loop)
        beating = (loop, self._ended)
        threading.Thread(target=self._keep_beating, args=beating, name="market lease", daemon=True).start()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._ended.set()

    def look(self, now_s: float) -> bool:
        """Beats if that is due; False where another process has the lease."""
        is_due = now_s - self._lease.beat_s > BEAT_AFTER_S and now_s - self.turned_s <= STANDS_STILL_S
        try:
            is_ours = not is_due or not self._lease.is_held or self._lease.beat_alone()
        except UNANSWERED as error:
            lease_waits.tell(error)
            return True
        lease_waits.over()
        return is_ours

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self.turned_s = time.monotonic()
        self._timer = loop.call_later(LOOK_S, self._turn, loop)

    def _keep_beating(self, loop: asyncio.AbstractEventLoop, ended: threading.Event) -> None:
        while not ended.wait(LOOK_S) and not loop.is_closed():
            is_ours = self.look(time.monotonic())
            connection.close()
            if not is_ours and not ended.is_set():
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(self._on_loss)
