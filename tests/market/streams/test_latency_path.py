"""From the engine's acceptance of a tick to the write: what is promised, and that a delay would be seen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry
from time_machine import Traveller

from core.clock import now_ms
from instruments.catalogue import catalogue
from market.engine.bus.bus_reader import BusReader
from market.engine.bus.local_bus import LocalBus
from market.engine.bus.price_follower import BusListener
from market.engine.bus.redis_bus import RedisBus
from market.engine.engine import Engine
from market.models import EngineState
from market.prices import quotes
from market.prices.records import AnyRecord, JournalPosition, Tick, TickAccepted
from market.streams.metrics import StreamMetrics
from market.streams.protocol.messages import MARKET
from market.streams.stream import NumberedStream
from market.streams.wire import OutgoingPrice
from tests.factories import make_instrument
from tests.market.bus.test_bus import JournalWriter
from tests.market.running import make_journal, make_runner
from tests.market.streams.hub.hubs import RecordedConnection
from tests.patience import until

PROMISED_S, DELAY_S = 0.05, 0.08
TICKS = 5


class SlowBus(LocalBus):
    """What is published is heard when the clock has gone on."""

    def __init__(self, hear: Callable[[list[AnyRecord]], None], clock: Traveller, delay_s: float) -> None:
        super().__init__(hear, make_journal())
        self._clock, self._delay_s = clock, delay_s

    def publish(self, records: list[AnyRecord]) -> None:
        self._clock.shift(self._delay_s)
        super().publish(records)


class LateBus(RedisBus):
    """The same, over Redis."""

    def __init__(self, url: str, clock: Traveller, delay_s: float) -> None:
        super().__init__(url)
        self._clock, self._delay_s = clock, delay_s

    def publish(self, records: list[AnyRecord]) -> None:
        self._clock.shift(self._delay_s)
        super().publish(records)


class Prices(NumberedStream):
    """The stream of prices of a process of its own."""

    def __init__(self) -> None:
        super().__init__(MARKET)

    def hear(self, records: list[AnyRecord]) -> None:
        for record in records:
            if isinstance(record, TickAccepted):
                outgoing = OutgoingPrice(record, 5, now_ms())
                self.send(record.symbol, outgoing, since_ms=record.accepted_ms)

    def listener(self) -> RecordedConnection:
        connection = RecordedConnection()
        self.hub.subscribe(self.hub.join(connection, lambda: None), ["EURUSD"])
        return connection


def tick(number: int) -> Tick:
    bid = 1.08 + number / 10_000
    return Tick("EURUSD", bid, bid + 0.0001, now_ms())


def scraped(stream: Prices) -> Callable[[str], float | None]:
    registry = CollectorRegistry()
    registry.register(StreamMetrics(stream))
    return lambda quantile: registry.get_sample_value(
        "tickwire_stream_latency_seconds", {"stream": "market", "quantile": quantile}
    )


@pytest.mark.django_db
@pytest.mark.parametrize(("delay_s", "is_kept"), [(0, True), (DELAY_S, False)])
def test_delay_between_engine_and_stream_breaks_the_promise_that_is_published(
    clock: Traveller, delay_s: float, is_kept: bool
) -> None:
    make_instrument()
    stream = Prices()

    async def run() -> None:
        stream.listener()
        runner = make_runner(Engine(quotes.Prices("bid")))
        runner.writer.lease.is_held = True
        runner.writer.begin()
        runner.bus = SlowBus(stream.hear, clock, delay_s)
        for number in range(TICKS):
            clock.shift(1)
            assert runner.push("push", [tick(number)]) == [None]
            await asyncio.sleep(0)

    asyncio.run(run())
    clock.shift(60)

    seen = [scraped(stream)(quantile) for quantile in ("0.5", "0.95", "0.99")]
    assert seen == [delay_s] * 3
    assert all(took_s is not None and took_s < PROMISED_S for took_s in seen) is is_kept


@pytest.mark.django_db
def test_one_write_is_one_measurement_however_many_hear_it(clock: Traveller) -> None:
    make_instrument()
    stream = Prices()

    async def run() -> None:
        connections = [stream.listener() for _ in range(3)]
        runner = make_runner(Engine(quotes.Prices("bid")), hear=stream.hear)
        runner.writer.lease.is_held = True
        runner.writer.begin()
        assert runner.push("push", [tick(0)]) == [None]
        clock.shift(0.03)
        assert runner.push("push", [tick(1)]) == [None]
        await asyncio.sleep(0)
        assert [len(connection.heard) for connection in connections] == [2, 2, 2]

    asyncio.run(run())

    latency = stream.hub.latency
    assert (latency.count, latency.sum_ms) == (1, 30)


@pytest.mark.django_db
def test_tick_that_nobody_hears_is_not_measured(clock: Traveller) -> None:
    make_instrument()
    stream = Prices()

    async def run() -> None:
        runner = make_runner(Engine(quotes.Prices("bid")), hear=stream.hear)
        runner.writer.lease.is_held = True
        runner.writer.begin()
        runner.push("push", [tick(0)])
        await asyncio.sleep(0)
        clock.shift(9)
        stream.listener()
        runner.push("push", [tick(1)])
        await asyncio.sleep(0)

    asyncio.run(run())

    assert (stream.hub.latency.count, stream.hub.latency.sum_ms) == (1, 0)


def heard_by(stream: Prices) -> BusListener:
    return BusListener(
        stream.hear,
        lambda symbol, records, came_ms: None,
        lambda epoch, checkpoints: None,
        lambda: None,
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("delay_s", [0, DELAY_S])
def test_delay_is_seen_in_another_process_too(own_redis: str, clock: Traveller, delay_s: float) -> None:
    make_instrument()
    catalogue.load_now()
    stream = Prices()

    def keep(position: JournalPosition) -> None:
        EngineState.objects.update_or_create(
            pk=1, defaults={"epoch": position.epoch, "position": position.number, "writer": "first"}
        )

    async def run() -> None:
        engine, bus = Engine(quotes.Prices("bid")), LateBus(own_redis, clock, delay_s)
        await bus.open(JournalWriter(), JournalPosition("", 0))
        await asyncio.to_thread(keep, bus.journal_position)
        reader = BusReader(own_redis, quotes.Prices("bid"), heard_by(stream))
        await reader.start()
        stream.listener()
        for number in range(TICKS):
            clock.shift(1)
            assert engine.take("push", [tick(number)], now_ms()) == [None]
            records, engine.records = engine.records, []
            bus.publish(records)
            await until(lambda: stream.hub.latency.count > number)  # noqa: B023 - it is waited for here
        await reader.stop()
        await bus.close()

    asyncio.run(run())

    assert (stream.hub.latency.count, stream.hub.latency.sum_ms) == (TICKS, TICKS * delay_s * 1_000)
