from __future__ import annotations

from prometheus_client import CollectorRegistry

from core.program.version import VERSION
from serving.readiness.answers import ReadinessMetrics


def test_metrics_tell_which_version_runs() -> None:
    registry = CollectorRegistry()
    registry.register(ReadinessMetrics())
    assert registry.get_sample_value("tickwire_version", {"version": VERSION}) == 1
