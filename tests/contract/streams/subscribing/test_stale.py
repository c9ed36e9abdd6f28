"""When the engine is gone, its streams say so, and say when it is back.

Over Redis the engine beside the service is ended; in one process it is its own tasks that end."""

from __future__ import annotations

import asyncio

from core.clock import now_ms
from market.engine.status import status_of, status_record
from tests.contract.streams.client import ORDERFLOW, Socket
from tests.contract.streams.conftest import Open
from tests.contract.streams.ticker import Ticker
from tests.factories import make_instrument
from tests.market.running import stop_engine_tasks


async def hush(ticker: Ticker) -> None:
    """As if what makes the engine speak had broken for good."""
    await stop_engine_tasks("market status", "market clock")


async def speak(ticker: Ticker) -> asyncio.Task[None]:
    """It tells of itself again as long as the task lives."""
    engine, bus = ticker.runner.engine, ticker.runner.bus

    async def keep_telling() -> None:
        while True:
            status = status_of(engine, now_ms(), "", bus.journal_position.epoch)
            bus.publish([status_record(status)])
            await asyncio.sleep(0.1)

    return asyncio.create_task(keep_telling())


def noticed(socket: Socket) -> tuple[str, list[str]]:
    frame = socket.hear_until("notice")
    assert frame.keys() == {"type", "code", "symbols", "time"}
    return frame["code"], frame["symbols"]


def test_loss_and_return_of_the_engine_are_told_to_everybody_once(
    opened: Open, ticker: Ticker, key: str, symbol: str, service: object
) -> None:
    other = make_instrument(f"OTHER{symbol}").symbol
    one, both, all_, signals = (
        opened(path, key=key) for path in ("/ws/market", "/ws/market", ORDERFLOW, "/ws/signals")
    )
    one.subscribe(symbol)
    both.subscribe(other, symbol)
    all_.subscribe()
    signals.subscribe()
    ticker.server.run(hush(ticker))
    assert noticed(one) == ("stale", [symbol])
    assert noticed(both) == ("stale", sorted([other, symbol]))
    assert noticed(all_) == ("stale", ["*"])

    late = opened("/ws/market", key=key)
    late.subscribe(symbol)
    assert noticed(late) == ("stale", [symbol])

    telling = ticker.server.run(speak(ticker))
    assert [noticed(socket) for socket in (one, both, all_, late)] == [
        ("live", [symbol]),
        ("live", sorted([other, symbol])),
        ("live", ["*"]),
        ("live", [symbol]),
    ]
    ticker(symbol)
    assert one.hear()["symbol"] == symbol
    assert signals.is_open
    assert not telling.done()
