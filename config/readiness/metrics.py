"""Readiness in Prometheus' words."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from .monitor import monitor


class ReadinessMetrics(Collector):
    def describe(self) -> list[Metric]:
        """Nothing is looked at when this is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        found = monitor.verdict()
        ready = GaugeMetricFamily("tickwire_ready", "1 while requests to this process would succeed.")
        ready.add_metric((), not found.reasons)
        yield ready
        text = "1 while it is away for all processes, as far as this one knows."
        degraded = GaugeMetricFamily("tickwire_degraded", text, labels=("what",))
        alone = GaugeMetricFamily(
            "tickwire_cut_off", "1 while it is away for this process alone.", labels=("what",)
        )
        for name in found.checks:
            degraded.add_metric((name,), name in found.degraded)
            alone.add_metric((name,), name in found.reasons)
        yield degraded
        yield alone
