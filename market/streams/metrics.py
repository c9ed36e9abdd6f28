"""Metrics of the streams of this process."""

from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from core.clock import now_ms

from .consumer import Stream, all_streams
from .hub.hub import Hub

LABEL = ("stream",)
LATENCY = "tickwire_stream_latency_seconds"
COUNTED: tuple[tuple[str, str, Callable[[Hub], int]], ...] = (
    ("frames", "Frames handed to sockets.", lambda hub: hub.frames),
    ("slow", "Clients given up: they read too slowly.", lambda hub: hub.slow.given_up),
    ("broken", "Sockets that broke at a write.", lambda hub: hub.broken),
)


class StreamMetrics(Collector):
    def __init__(self, streams: Sequence[Stream] = all_streams) -> None:
        self._streams = streams

    def describe(self) -> list[Metric]:
        """Empty, so that registering it collects nothing."""
        return []

    def collect(self) -> Iterator[Metric]:
        connections = GaugeMetricFamily("tickwire_stream_connections", "Open sockets.", labels=LABEL)
        for stream in self._streams:
            connections.add_metric((stream.kind.name,), stream.hub.members)
        yield connections
        for name, text, count_of in COUNTED:
            counter = CounterMetricFamily(f"tickwire_stream_{name}", text, labels=LABEL)
            for stream in self._streams:
                counter.add_metric((stream.kind.name,), count_of(stream.hub))
            yield counter
        yield self._closed()
        yield self._latency(now_ms())

    def _closed(self) -> Metric:
        family = CounterMetricFamily(
            "tickwire_stream_closed", "Sockets closed by this process, by code.", labels=("stream", "code")
        )
        for stream in self._streams:
            for code, count in sorted(stream.hub.closed.items()):
                family.add_metric((stream.kind.name, str(code)), count)
        return family

    def _latency(self, at_ms: int) -> Metric:
        family = SummaryMetricFamily(
            LATENCY, "From the engine's acceptance of a tick to its write; quantiles of the last full minute."
        )
        for stream in self._streams:
            if stream.kind.is_numbered:
                labels: dict[str, str] = {"stream": stream.kind.name}
                latency = stream.hub.latency
                for share, took_ms in latency.quantiles(at_ms).items():
                    family.add_sample(LATENCY, labels | {"quantile": str(share)}, took_ms / 1000)
                family.add_sample(f"{LATENCY}_count", labels, latency.count)
                family.add_sample(f"{LATENCY}_sum", labels, latency.sum_ms / 1000)
        return family
