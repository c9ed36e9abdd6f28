"""What the engine says of itself."""

from __future__ import annotations

import asyncio

import pytest

from core.threads import in_thread
from market.engine.engine import CLOSE_GRACE_MS, Engine
from market.engine.status import EngineStatus, read_status, status_of
from market.prices.quotes import Prices
from market.prices.records import AnyRecord, StatusRecord, Tick
from market.store.lease import Lease
from tests.factories import make_instrument
from tests.market.running import make_runner
from tests.market.ticking import HOUR_MS, NOON_MS
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("transactional_db", "clock")]


@pytest.mark.parametrize(
    ("later_ms", "delta"), [(0, 2), (12 * HOUR_MS - 1, 2), (12 * HOUR_MS + CLOSE_GRACE_MS, 0)]
)
def test_cumulative_delta_is_that_of_the_day(later_ms: int, delta: float) -> None:
    make_instrument("EURUSD")
    engine = Engine(Prices("bid"))
    bids = enumerate([1.08, 1.0801, 1.0802])
    engine.take("push", [Tick("EURUSD", bid, bid + 0.0002, NOON_MS - 9 + n) for n, bid in bids], NOON_MS)

    (instrument,) = status_of(engine, NOON_MS + later_ms, "me", "e1").instruments

    assert (instrument.cumulative_delta, instrument.ticks) == (delta, 3)


def test_engine_without_the_lease_says_that_it_writes_nothing() -> None:
    async def first_word() -> EngineStatus:
        assert await in_thread(Lease().take) is not None
        told: asyncio.Future[EngineStatus] = asyncio.get_running_loop().create_future()

        def hear(records: list[AnyRecord]) -> None:
            for record in records:
                if isinstance(record, StatusRecord) and not told.done():
                    told.set_result(read_status(record))

        runner = make_runner(Engine(Prices("bid")), hear=hear)
        await runner.start()
        status = await asyncio.wait_for(told, PATIENCE_S)
        await runner.stop()
        return status

    status = asyncio.run(first_word())

    assert (status.writer, status.at_ms) == ("", NOON_MS)
