"""From the engine's acceptance of a tick to the write, in whole milliseconds of the last full minute."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from prometheus_client import CollectorRegistry
from time_machine import Traveller

from core.clock import now_ms
from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from market.engine.bus.bus_reader import BusListener, BusReader
from market.engine.engine import Engine
from market.engine.runner import Runner
from market.metrics import StreamMetrics
from market.prices import quotes
from market.prices.records import AnyRecord, Tick, TickAccepted
from market.streams.hub.delivery import LONGEST_MS, WriteLatency
from market.streams.market_streams import NumberedStream
from market.streams.protocol.messages import MARKET
from market.streams.wire import OutgoingPrice
from tests.factories import make_instrument
from tests.market.bus.buses import opened, write_position
from tests.market.running import make_runner
from tests.market.ticking import NOON_MS
from tests.patience import until

from .hub.hubs import RecordedConnection

DELAY_S, TICKS = 0.08, 5


class Prices(NumberedStream):
    """The stream of prices of a process of its own, which hears records so much later."""

    def __init__(self, clock: Traveller, delay_s: float = 0) -> None:
        super().__init__(MARKET)
        self._clock, self.delay_s = clock, delay_s

    def hear(self, records: list[AnyRecord]) -> None:
        self._clock.shift(self.delay_s)
        for record in records:
            if isinstance(record, TickAccepted):
                outgoing = OutgoingPrice(record, 5, now_ms())
                self.send(record.symbol, outgoing, since_ms=record.accepted_ms)

    def listen(self) -> RecordedConnection:
        connection = RecordedConnection()
        self.hub.subscribe(self.hub.join(connection, lambda: None), ["EURUSD"])
        return connection

    def runner(self) -> Runner:
        runner = make_runner(Engine(quotes.Prices("bid")), hear=self.hear)
        runner.writer.lease.is_held = True
        runner.writer.begin()
        return runner


def tick(number: int) -> Tick:
    bid = 1.08 + number / 10_000
    return Tick("EURUSD", bid, bid + 0.0001, now_ms())


@pytest.mark.django_db
@pytest.mark.parametrize("delay_s", [0, DELAY_S])
def test_delay_between_engine_and_stream_is_published(clock: Traveller, delay_s: float) -> None:
    make_instrument()
    stream = Prices(clock, delay_s)

    async def run() -> None:
        stream.listen()
        runner = stream.runner()
        for number in range(TICKS):
            clock.shift(1)
            assert runner.push("push", [tick(number)]) == [None]
            await asyncio.sleep(0)

    asyncio.run(run())
    clock.shift(60)
    registry = CollectorRegistry()
    registry.register(StreamMetrics([stream]))

    for quantile in ("0.5", "0.95", "0.99"):
        labels = {"stream": "market", "quantile": quantile}
        assert registry.get_sample_value("tickwire_stream_latency_seconds", labels) == delay_s


@pytest.mark.django_db
def test_write_is_one_measurement_however_many_hear_it_and_none_if_nobody_does(clock: Traveller) -> None:
    make_instrument()
    stream = Prices(clock)

    async def run() -> None:
        runner = stream.runner()
        assert runner.push("push", [tick(0)]) == [None]
        await asyncio.sleep(0)
        clock.shift(9)
        connections = [stream.listen() for _ in range(3)]
        assert runner.push("push", [tick(1)]) == [None]
        clock.shift(0.03)
        assert runner.push("push", [tick(2)]) == [None]
        await asyncio.sleep(0)
        assert [len(connection.heard) for connection in connections] == [2, 2, 2]

    asyncio.run(run())

    assert (stream.hub.latency.count, stream.hub.latency.sum_ms) == (1, 30)


@pytest.mark.django_db(transaction=True)
def test_delay_is_seen_in_another_process_too(own_redis: str, clock: Traveller) -> None:
    make_instrument()
    catalogue.load_now()
    stream = Prices(clock, DELAY_S)
    listener = BusListener(
        stream.hear, lambda symbol, records, came_ms: None, lambda epoch, checkpoints: None, lambda: None
    )

    async def run() -> None:
        engine, bus = Engine(quotes.Prices("bid")), await opened(own_redis)
        await asyncio.to_thread(write_position, bus.journal_position)
        reader = BusReader(own_redis, quotes.Prices("bid"), listener)
        await reader.start()
        stream.listen()
        for number in range(TICKS):
            clock.shift(1)
            assert engine.take("push", [tick(number)], now_ms()) == [None]
            records, engine.records = engine.records, []
            bus.publish(records)
            await until(lambda: stream.hub.latency.count > number)  # noqa: B023 - it is waited for here
        await reader.stop()
        await bus.close()

    asyncio.run(run())

    assert (stream.hub.latency.count, stream.hub.latency.sum_ms) == (TICKS, TICKS * DELAY_S * 1_000)


def measured(*took_ms: int) -> WriteLatency:
    """All in the minute that begins at noon."""
    latency = WriteLatency()
    for each in took_ms:
        latency.add(NOON_MS - each, NOON_MS)
    return latency


@pytest.mark.parametrize(
    ("took_ms", "expected"),
    [
        ([7], [7, 7, 7]),
        ([1, 9], [1, 9, 9]),
        (range(1, 101), [50, 95, 99]),
        ([2] * 99 + [80], [2, 2, 2]),
        ([2] * 49 + [80] * 51, [80, 80, 80]),
        # A clock that is behind the engine's makes no negative time.
        ([-40], [0, 0, 0]),
    ],
)
def test_quantile_is_the_smallest_that_so_many_do_not_exceed(
    took_ms: Iterable[int], expected: list[int]
) -> None:
    assert list(measured(*took_ms).quantiles(NOON_MS + MINUTE_MS).values()) == expected


def test_quantiles_are_those_of_the_last_full_minute() -> None:
    later_ms = (0, MINUTE_MS - 1, MINUTE_MS, 2 * MINUTE_MS - 1, 2 * MINUTE_MS)
    is_there = [bool(measured(7).quantiles(NOON_MS + each)) for each in later_ms]
    assert is_there == [False, False, True, True, False]
    latency = measured(7)
    latency.add(NOON_MS, NOON_MS + MINUTE_MS)
    assert latency.quantiles(NOON_MS + MINUTE_MS)[0.5] == 7


def test_count_and_sum_go_on_over_the_minutes_and_a_clock_that_is_set_back_begins_another() -> None:
    latency = measured(7, 8)
    latency.add(NOON_MS, NOON_MS + 5 * MINUTE_MS)
    assert (latency.count, latency.sum_ms) == (3, 15 + LONGEST_MS)
    latency.add(NOON_MS - MINUTE_MS - 3, NOON_MS - MINUTE_MS)
    assert latency.quantiles(NOON_MS)[0.5] == 3
