"""Whether the ledger is signed and witnessed, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from .following import following
from .witnesses import witnesses


class LogMetrics(Collector):
    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        text = "0 while no checkpoint can be signed; the log has the reason."
        yield GaugeMetricFamily("tickwire_ledger_is_signed", text, value=int(not following.fault))
        text = "Since a witness last cosigned a checkpoint, or since one was signed for the first time."
        age = GaugeMetricFamily("tickwire_witness_age_seconds", text, labels=("witness",))
        for link in witnesses.links:
            if link.cosigned_at is not None:
                age.add_metric((link.name,), (timezone.now() - link.cosigned_at).total_seconds())
        yield age
