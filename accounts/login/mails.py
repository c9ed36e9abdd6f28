"""Mails are sent in threads of their own, so that a mail server that is away or hangs breaks no page."""

import asyncio
import logging
import time
from collections import deque
from threading import Condition, Thread

from django.core.mail import EmailMessage
from prometheus_client import Counter

logger = logging.getLogger(__name__)
THREADS = 2

# At a server that takes EMAIL_TIMEOUT for each, those behind them would come when nobody waits for them.
MOST_WAITING = 100

# Of a process that stops: so long the last ones have.
STOP_WITHIN_S = 3.0
lost = Counter("tickwire_mails_lost", "Mails that could not be sent.")


class MailQueue:
    """Where it is not started, as in a command, a mail is sent at once."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._waiting: deque[tuple[str, EmailMessage]] = deque()
        self._is_open = False
        self._sending: list[str] = []

    @property
    def waiting(self) -> int:
        """Those that are being sent included."""
        return len(self._waiting) + len(self._sending)

    def start(self) -> None:
        self._is_open = True
        for number in range(THREADS):
            # The process does not wait for it at its end: it may hang.
            Thread(target=self._work, name=f"mail-{number}", daemon=True).start()

    async def stop(self) -> None:
        deadline = time.monotonic() + STOP_WITHIN_S
        while self.waiting and time.monotonic() < deadline:  # noqa: ASYNC110 - threads change it
            await asyncio.sleep(0.02)
        with self._changed:
            self._is_open = False
            left = [kind for kind, _ in self._waiting]
            self._waiting.clear()
            self._changed.notify_all()
            sending = list(self._sending)
        for kind in left:
            give_up(kind, "the service stops")
        for kind in sending:
            give_up(kind, "the service stops before the mail server has taken it")

    def send(self, kind: str, mail: EmailMessage) -> None:
        if not self._is_open:
            deliver(kind, mail)
            return
        with self._changed:
            has_room = len(self._waiting) < MOST_WAITING
            if has_room:
                self._waiting.append((kind, mail))
                self._changed.notify()
        if not has_room:
            give_up(kind, f"{MOST_WAITING} others wait for the mail server")

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or not self._is_open)
                if not self._is_open:
                    return
                kind, mail = self._waiting.popleft()
                self._sending.append(kind)
            try:
                deliver(kind, mail)
            finally:
                with self._changed:
                    self._sending.remove(kind)


def deliver(kind: str, mail: EmailMessage) -> None:
    try:
        mail.send()
    except OSError as error:
        give_up(kind, str(error))
    except Exception:  # noqa: BLE001 - the top of a thread, and no page may fail by what its mail holds
        logger.exception("A mail could not be made")
        give_up(kind, "see above")


def give_up(kind: str, why: str) -> None:
    lost.inc()
    logger.error("No mail was sent of %s: %s", kind, why)


outgoing = MailQueue()
