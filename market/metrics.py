"""Metrics of the market and of the streams of this process, computed when they are asked for, so that a tick
pays nothing."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from django.conf import settings
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    SummaryMetricFamily,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

from core.clock import now_ms
from market.overview import InstrumentOverview, Overview, overview
from market.runtime import is_heard
from market.streams.consumer import Stream, all_streams, one_socket
from market.streams.hub.hub import Hub
from market.streams.protocol.messages import TOGETHER

STATES = ("open", "closed", "stale")
engine_registry = CollectorRegistry()
"""What `run_engine` says on its port. Rooms add theirs in the `ready` of their app."""
Labels = TypeVar("Labels", bound=tuple[str, ...])
Samples = Mapping[Labels, float | None]
"""The value by its labels; None if there is none yet."""


class MarketMetrics(Collector):
    def describe(self) -> list[Metric]:
        """Nothing is looked at when this is registered: there is no market yet."""
        return []

    def collect(self) -> Iterator[Metric]:
        seen = overview()
        yield from _of_engine(seen)
        yield from _of_feeds(seen)
        yield from _of_all(seen.instruments)
        if settings.METRICS_PER_SYMBOL:
            yield from _of_quotes(seen.instruments)
            yield from _of_ticks(seen.instruments)
            yield from _of_days(seen.instruments)


class ProcessMarketMetrics(Collector):
    """What differs between the processes that hear the same engine."""

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        heard = "1 while this process hears an engine: 0 within three seconds of losing it, or their bus."
        yield _gauge("engine_heard", heard, {(): is_heard()})


def _of_engine(seen: Overview) -> Iterator[Metric]:
    engine, age_s = seen.engine, _seconds(seen.engine_age_ms)
    is_writer = seen.is_running and bool(engine.writer)
    ahead = "The market's time ahead of the machine's, after that was set."
    yield _gauge("engine_up", "1 while an engine speaks to this process.", {(): seen.is_running})
    yield _gauge("engine_age_seconds", "Since the engine last spoke to this process.", {(): age_s})
    yield _gauge(
        "engine_is_writer", "1 while that engine holds the lease and writes its candles.", {(): is_writer}
    )
    yield InfoMetricFamily(
        "tickwire_engine",
        "Which process that engine is, and the epoch of its numbering.",
        value={"writer": engine.writer, "epoch": engine.epoch},
    )
    full = "1 while that engine takes no ticks, because the bus has no room for them."
    yield _gauge("bus_full", full, {(): engine.bus_fault == "full"})
    kept = "1 while that engine keeps the last ticks for REST: 0 while its disk takes none."
    yield _gauge("recent_ticks_kept", kept, {(): not engine.ticks_fault})
    yield _gauge("candles_waiting", "Closed candles that are not written yet.", {(): engine.waiting_rows})
    yield _counter("clock_steps", "How often the machine's clock was set.", {(): engine.clock_steps})
    yield _gauge("clock_ahead_seconds", ahead, {(): engine.clock_off_ms / 1000})


def _of_feeds(seen: Overview) -> Iterator[Metric]:
    feeds, at_ms = seen.feeds, seen.at_ms
    refused = {(feed.name, why): count for feed in feeds for why, count in sorted(feed.refused.items())}
    up = {(feed.name,): seen.is_running and feed.state == "live" for feed in feeds}
    ages = {(feed.name,): _seconds(at_ms - feed.heard_ms if feed.heard_ms else None) for feed in feeds}
    lags = {(feed.name,): _seconds(feed.lag_ms if feed.ticks else None) for feed in feeds}
    yield _counter("ticks", "Ticks let in.", {(feed.name,): feed.ticks for feed in feeds}, "feed")
    yield _counter("ticks_refused", "Ticks refused, by reason.", refused, "feed", "reason")
    yield _gauge("feed_up", "1 while it is heard.", up, "feed")
    yield _gauge("feed_age_seconds", "Since it was last heard.", ages, "feed")
    yield _gauge("feed_lag_seconds", "How old its last tick was when it came.", lags, "feed")


def _of_all(instruments: list[InstrumentOverview]) -> Iterator[Metric]:
    states = Counter((each.state,) for each in instruments)
    on_fallback = sum(each.is_on_fallback for each in instruments)
    yield _gauge("instruments", "How many are in this state.", {(s,): states[s,] for s in STATES}, "state")
    yield _gauge("instruments_on_fallback", "How many their fallback prices.", {(): on_fallback})


def _of_quotes(instruments: list[InstrumentOverview]) -> Iterator[Metric]:
    ages = {(each.facts.symbol,): _seconds(each.age_ms) for each in instruments}
    states = {(each.facts.symbol, state): each.state == state for each in instruments for state in STATES}
    yield _gauge("quote_age_seconds", "Since the last tick, by its own time.", ages, "symbol")
    yield _gauge("instrument_state", "1 for the state it is in.", states, "symbol", "state")


def _of_ticks(instruments: list[InstrumentOverview]) -> Iterator[Metric]:
    statuses = {(each.status.symbol,): each.status for each in instruments if each.status is not None}
    on_fallback = {(each.facts.symbol,): each.is_on_fallback for each in instruments if each.status}
    ticks = {symbol: one.ticks for symbol, one in statuses.items()}
    switches = {symbol: one.switches for symbol, one in statuses.items()}
    deltas = {symbol: one.cumulative_delta for symbol, one in statuses.items()}
    yield _counter("instrument_ticks", "Ticks numbered, over all restarts.", ticks, "symbol")
    yield _counter("feed_switches", "Changes to the fallback and back.", switches, "symbol")
    yield _gauge("instrument_on_fallback", "1 while the fallback prices it.", on_fallback, "symbol")
    yield _gauge("cumulative_delta", "Bought minus sold since 00:00 UTC.", deltas, "symbol")


def _of_days(instruments: list[InstrumentOverview]) -> Iterator[Metric]:
    days = {(each.facts.symbol,): each.day for each in instruments if each.day is not None}
    for name, text, field, unit in (
        ("open", "First price of the last 24 hours.", "open", 1),
        ("high", "Highest price of the last 24 hours.", "high", 1),
        ("low", "Lowest price of the last 24 hours.", "low", 1),
        ("last", "Last price of the last 24 hours.", "last", 1),
        ("change", "From the first price of the last 24 hours to the last.", "change", 1),
        ("change_ratio", "The same as a share of the first.", "change_percent", 100),
        ("volume", "Traded in the last 24 hours, or ticks where no sizes are known.", "volume", 1),
    ):
        values = {symbol: round(getattr(day, field) / unit, 8) for symbol, day in days.items()}
        yield _gauge(f"day_{name}", text, values, "symbol")


def _gauge(name: str, text: str, samples: Samples[Labels], *labels: str) -> Metric:
    return _filled(GaugeMetricFamily(f"tickwire_{name}", text, labels=labels), samples)


def _counter(name: str, text: str, samples: Samples[Labels], *labels: str) -> Metric:
    return _filled(CounterMetricFamily(f"tickwire_{name}", text, labels=labels), samples)


def _filled(family: GaugeMetricFamily | CounterMetricFamily, samples: Samples[Labels]) -> Metric:
    for labels, value in samples.items():
        if value is not None:
            family.add_metric(labels, value)
    return family


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


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
        for name, hub in self._hubs:
            connections.add_metric((name,), hub.members)
        yield connections
        for counted, text, count_of in COUNTED:
            counter = CounterMetricFamily(f"tickwire_stream_{counted}", text, labels=LABEL)
            for name, hub in self._hubs:
                counter.add_metric((name,), count_of(hub))
            yield counter
        yield self._closed()
        yield self._latency(now_ms())

    @property
    def _hubs(self) -> list[tuple[str, Hub]]:
        """By the names of their paths."""
        return [*((stream.kind.name, stream.hub) for stream in self._streams), (TOGETHER, one_socket)]

    def _closed(self) -> Metric:
        family = CounterMetricFamily(
            "tickwire_stream_closed", "Sockets closed by this process, by code.", labels=("stream", "code")
        )
        for name, hub in self._hubs:
            for code, count in sorted(hub.closed.items()):
                family.add_metric((name, str(code)), count)
        return family

    def _latency(self, at_ms: int) -> Metric:
        family = SummaryMetricFamily(
            LATENCY, "From the engine's acceptance of a tick to its write; quantiles of the last full minute."
        )
        unmeasured = {stream.kind.name for stream in self._streams if not stream.kind.is_numbered}
        for name, hub in self._hubs:
            if name not in unmeasured:
                labels: dict[str, str] = {"stream": name}
                for share, took_ms in hub.latency.quantiles(at_ms).items():
                    family.add_sample(LATENCY, labels | {"quantile": str(share)}, took_ms / 1000)
                family.add_sample(f"{LATENCY}_count", labels, hub.latency.count)
                family.add_sample(f"{LATENCY}_sum", labels, hub.latency.sum_ms / 1000)
        return family
