"""The streams of this process in Prometheus' words."""

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from core.clock import now_ms

from .stream import NumberedStream, Stream

LABEL = ("stream",)
LATENCY = "tickwire_stream_latency_seconds"


class StreamMetrics(Collector):
    def __init__(self, *streams: Stream) -> None:
        self._streams: dict[str, Stream] = {stream.kind.name: stream for stream in streams}

    def describe(self) -> list[Metric]:
        """Nothing is looked at when this is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        hubs = {name: stream.hub for name, stream in self._streams.items()}
        connections = GaugeMetricFamily("tickwire_stream_connections", "Open sockets.", labels=LABEL)
        for name, hub in hubs.items():
            connections.add_metric((name,), hub.members)
        yield connections
        yield _counter(
            "frames", "Frames handed to sockets.", ((name, hub.frames) for name, hub in hubs.items())
        )
        yield _counter(
            "slow",
            "Clients given up: they read too slowly.",
            ((n, hub.slow.given_up) for n, hub in hubs.items()),
        )
        yield _counter(
            "broken", "Sockets that broke at a write.", ((name, hub.broken) for name, hub in hubs.items())
        )
        yield self._closed()
        yield self._latency(now_ms())

    def _closed(self) -> Metric:
        family = CounterMetricFamily(
            "tickwire_stream_closed", "Sockets closed by this process, by code.", labels=("stream", "code")
        )
        for name, stream in self._streams.items():
            for code, count in sorted(stream.hub.closed.items()):
                family.add_metric((name, str(code)), count)
        return family

    def _latency(self, at_ms: int) -> Metric:
        family = SummaryMetricFamily(
            LATENCY, "From the engine's acceptance of a tick to its write; quantiles of the last full minute."
        )
        for name, stream in self._streams.items():
            if isinstance(stream, NumberedStream):
                labels, latency = {"stream": name}, stream.latency
                for share, took_ms in latency.quantiles(at_ms).items():
                    family.add_sample(LATENCY, labels | {"quantile": str(share)}, took_ms / 1000)
                family.add_sample(f"{LATENCY}_count", labels, latency.count)
                family.add_sample(f"{LATENCY}_sum", labels, latency.sum_ms / 1000)
        return family


def _counter(name: str, text: str, samples: Iterable[tuple[str, int]]) -> Metric:
    family = CounterMetricFamily(f"tickwire_stream_{name}", text, labels=LABEL)
    for stream, value in samples:
        family.add_metric((stream,), value)
    return family
