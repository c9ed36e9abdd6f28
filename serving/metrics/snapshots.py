"""What one process counts and measures at one moment, as it is told to the supervisor and added up."""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

logger = logging.getLogger(__name__)

# What the engine or the database tells every process: the same in all of them, so that it is never added up.
SHARED = CollectorRegistry()


class Sample(NamedTuple):
    name: str
    labels: dict[str, str]
    value: float


class Family(msgspec.Struct, frozen=True):
    name: str
    text: str
    kind: str
    samples: list[Sample]


class Snapshot(msgspec.Struct, frozen=True):
    own: list[Family]
    shared: list[Family] = []
    shared_at: float = 0.0
    """When what is shared was told to this process: the latest is the best."""
    readiness: tuple[int, dict[str, Any]] = (200, {})
    """What its `/readyz` answers."""


class ProcessMetrics:
    """The figures of this process. `shared_at` and `readiness` are handed down."""

    def __init__(self) -> None:
        self.shared_at: Callable[[], float] = lambda: 0.0
        self.readiness: Callable[[], tuple[int, dict[str, Any]]] = lambda: (200, {})

    def text(self) -> bytes:
        return generate_latest(REGISTRY) + generate_latest(SHARED)

    def snapshot(self) -> Snapshot:
        """From a thread, as everything that looks at the market."""
        own, shared = families(REGISTRY), families(SHARED)
        return Snapshot(own, shared, self.shared_at(), self.readiness())

    def last_words(self) -> Snapshot:
        """When the market has been stopped: what was counted until then."""
        return Snapshot(families(REGISTRY))


def families(registry: Collector) -> list[Family]:
    return [
        Family(metric.name, metric.documentation, metric.type, _samples(metric))
        for metric in registry.collect()
    ]


def _samples(metric: Metric) -> list[Sample]:
    # When a counter was made says nothing that a sum of processes could keep.
    made = f"{metric.name}_created"
    return [Sample(each.name, each.labels, float(each.value)) for each in metric.samples if each.name != made]


class Exposition(Collector):
    """Families as the client library writes them."""

    def __init__(self, told: Iterable[Family]) -> None:
        self._told = told

    def collect(self) -> Iterator[Metric]:
        for family in self._told:
            metric = Metric(family.name, family.text, family.kind)
            for sample in family.samples:
                metric.add_sample(sample.name, sample.labels, sample.value)
            yield metric


def text_of(told: Iterable[Family]) -> bytes:
    return generate_latest(Exposition(told))


process_metrics = ProcessMetrics()
