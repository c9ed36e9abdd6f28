"""Each process that serves looks at the log again and again, and signs when a checkpoint is due."""

from __future__ import annotations

import asyncio
import logging

from django.utils import timezone

from core.background import BackgroundLoop
from core.database import UNANSWERED
from core.fault_log import LastingFault
from core.threads import in_thread

from .keyring import KeysUnopened
from .remembered import Forked
from .signing import Signer, signer

logger = logging.getLogger(__name__)
LOOK_EVERY_S = 1.0


class Following:
    def __init__(self, signs: Signer = signer) -> None:
        self._signer = signs
        self.fault = ""
        """Why nothing is signed; empty while all is well."""
        self._wait_s = LOOK_EVERY_S
        self._loop = BackgroundLoop(
            "checkpoints of the ledger",
            self.look,
            fault=LastingFault(logger, "No checkpoint of the ledger is signed", logging.ERROR),
            broke="A checkpoint of the ledger could not be signed",
            passing=(Forked, KeysUnopened, *UNANSWERED),
            after=self._wait,
            again=LOOK_EVERY_S,
        )
        self.start, self.stop = self._loop.start, self._loop.stop

    async def look(self) -> None:
        now = timezone.now()
        try:
            due_at = await in_thread(self._signer.look, now)
        except Exception as error:
            self.fault = str(error) or type(error).__name__
            raise
        self.fault = ""
        self._wait_s = min(LOOK_EVERY_S, max(0.0, (due_at - now).total_seconds()))

    async def _wait(self) -> None:
        await asyncio.sleep(self._wait_s)


following = Following()
