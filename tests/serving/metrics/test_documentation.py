"""docs/metrics.md names every metric, and none that there is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client import REGISTRY, CollectorRegistry

from archive.journal import TickJournal, TickJournalWriter
from archive.keeper import keeper
from core.program.version import VERSION
from market.management.engine_health import engine_health
from serving.metrics.collection import SupervisorMetrics
from serving.metrics.snapshots import SHARED, Family, families
from serving.readiness.answers import ReadinessMetrics

DOCS = Path(__file__).parents[3] / "docs" / "metrics.md"
ENDINGS = {"counter": "_total", "info": "_info"}


def documented() -> set[str]:
    return set(re.findall(r"^\| `(tickwire_\w+)`", DOCS.read_text(), re.MULTILINE))


def exported() -> set[str]:
    found: list[Family] = []
    for registry in (REGISTRY, SHARED, SupervisorMetrics().registry, engine_health.registry):
        found += families(registry)
    ours = (family for family in found if family.name.startswith("tickwire_"))
    return {family.name + ENDINGS.get(family.kind, "") for family in ours}


@pytest.mark.django_db
def test_documentation_names_every_metric_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An engine that keeps its ticks.
    monkeypatch.setattr(keeper, "writer", TickJournalWriter(TickJournal(tmp_path), "bid", {}, 0))
    found, told = exported(), documented()
    assert len(found) > 30
    assert found == told


def test_metrics_tell_which_version_runs() -> None:
    registry = CollectorRegistry()
    registry.register(ReadinessMetrics())
    assert registry.get_sample_value("tickwire_version", {"version": VERSION}) == 1
