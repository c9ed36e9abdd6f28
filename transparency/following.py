"""Each serving process looks at the log every second, and signs when a checkpoint is due. Metrics say whether
the log is signed and witnessed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from core.background import BackgroundLoop
from core.database import UNANSWERED
from core.fault_log import LastingFault
from core.threads import in_thread

from .keyring import KeysUnopened
from .remembered import Forked
from .signing import Signer
from .witnesses import witnesses

logger = logging.getLogger(__name__)
LOOK_EVERY_S = 1.0


class Following:
    def __init__(self, signer: Signer) -> None:
        self._signer = signer
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


class LogMetrics(Collector):
    def __init__(self, following: Following) -> None:
        self._following = following

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        text = "0 while no checkpoint can be signed; the log has the reason."
        yield GaugeMetricFamily("tickwire_ledger_is_signed", text, value=int(not self._following.fault))
        text = "Since a witness last cosigned a checkpoint, or since one was signed for the first time."
        age = GaugeMetricFamily("tickwire_witness_age_seconds", text, labels=("witness",))
        for link in witnesses.links:
            if link.cosigned_at is not None:
                age.add_metric((link.name,), (timezone.now() - link.cosigned_at).total_seconds())
        yield age
