"""What a stream says of itself: instruments that end, withheld sources, an engine that is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from core.clock import now_ms
from instruments.models import Instrument, WithheldSource
from instruments.saving import pass_on_again, save, withhold
from market import runtime as market
from market.engine.status import status_of
from tests.client import Api, Server
from tests.contract.answers import refusal
from tests.contract.streams.client import MARKET, ORDERFLOW, Socket
from tests.contract.streams.conftest import Open
from tests.contract.streams.ticker import Ticker
from tests.factories import make_instrument
from tests.market.running import stop_engine_tasks
from tests.patience import wait_until

SIGNALS = "/ws/signals"


@pytest.fixture
def other(symbol: str) -> str:
    return str(make_instrument(f"OTHER{symbol}").symbol)


def change(symbol: str, **fields: object) -> None:
    change_one(Instrument.objects.get(symbol=symbol), **fields)


def change_one(instrument: Instrument, **fields: object) -> None:
    for name, value in fields.items():
        setattr(instrument, name, value)
    save(instrument, by="test")


def noticed(socket: Socket) -> tuple[str, list[str]]:
    frame = socket.hear_until("notice")
    assert frame.keys() == {"type", "code", "symbols", "time"}
    return frame["code"], frame["symbols"]


def test_deactivated_instrument_is_told_to_who_has_it_and_stays_subscribed(
    opened: Open, ticker: Ticker, key: str, path: str, symbol: str, other: str
) -> None:
    socket, unconcerned = opened(path, key=key), opened(path, key=key)
    socket.subscribe(symbol, other)
    unconcerned.subscribe(other)
    # A change of another kind is no end.
    change(symbol, name="Another name")
    change(symbol, active=False)
    assert noticed(socket) == ("deactivated", [symbol])
    again = socket.subscribe(symbol, other)
    assert (again["symbols"], again["rejected"]) == (sorted([other, symbol]), [])
    ticker.past_a_minute(other)
    assert [each.hear()["symbol"] for each in (socket, unconcerned)] == [other] * 2


def test_who_asked_for_all_keeps_the_others_and_signals_what_still_closes(
    opened: Open, key: str, symbol: str
) -> None:
    flow, signals = opened(ORDERFLOW, key=key), opened(SIGNALS, key=key)
    assert flow.subscribe()["symbols"] == ["*"]
    signals.subscribe(symbol, events=["signal.closed"])
    change(symbol, active=False)
    code, symbols = noticed(flow)
    assert (code, symbol in symbols) == ("deactivated", True)
    assert flow.ask({"action": "list"})["symbols"] == ["*"]
    newcomer = make_instrument(f"NEW{symbol}", active=False).symbol
    change(newcomer, active=True)
    assert noticed(flow) == ("activated", [newcomer])
    assert noticed(signals) == ("deactivated", [symbol])
    again = signals.subscribe(symbol)
    assert (again["symbols"], again["rejected"]) == ([symbol], [])


@pytest.mark.parametrize("field", ["active", "symbol"])
def test_once_it_is_offered_again_it_flows_to_all_who_named_it_without_a_hole_in_the_numbers(
    opened: Open, ticker: Ticker, key: str, symbol: str, field: str
) -> None:
    ticker(symbol, 3)
    instrument = Instrument.objects.get(symbol=symbol)
    named, everything = opened(MARKET, key=key), opened(ORDERFLOW, key=key)
    named.subscribe(symbol, features=["seq"])
    everything.subscribe(features=["seq"])
    change_one(instrument, **{field: False if field == "active" else f"NEW{symbol}"})
    assert noticed(named) == ("deactivated", [symbol])
    change_one(instrument, active=True, symbol=symbol)
    assert noticed(named) == ("activated", [symbol])
    while noticed(everything) != ("activated", [symbol]):
        pass
    ticker(symbol)
    assert [each.hear()["seq"] for each in (named, everything)] == [4, 3]


@pytest.fixture
def push(service: Server) -> Iterator[WithheldSource]:
    """What these tests tick with; afterwards it is handed on again."""
    yield WithheldSource(name="push", why="Its terms forbid it.")
    pass_on_again(WithheldSource.objects.all(), by="test")


def test_nobody_gets_the_data_of_a_withheld_source_and_the_engine_goes_on(
    opened: Open, service: Server, ticker: Ticker, key: str, symbol: str, push: WithheldSource
) -> None:
    ticker(symbol)
    named, everything = opened(MARKET, key=key), opened(ORDERFLOW, key=key)
    named.subscribe(symbol)
    everything.subscribe()
    with Api(service, key) as api:
        quote = f"/api/market/{symbol}/quote"
        assert api.ask(quote).status_code == 200
        withhold(push, by="test")
        assert noticed(named) == ("deactivated", [symbol])
        wait_until(lambda: api.ask(quote).status_code == 404)
        for path in (quote, f"/api/market/{symbol}", f"/api/analysis/{symbol}"):
            assert "terms of its source" in refusal(api.ask(path), 404, "symbol_not_found", field="symbol")
        assert symbol not in api.ask("/api/symbols").text
        tick = ticker(symbol, 3)[-1]
        known = market.quote(symbol)
        assert known is not None
        assert known.bid == tick.bid
        assert symbol in noticed(everything)[1]
        # A question's answer comes next: of the three ticks nobody was sent one.
        assert everything.ask({"action": "list"})["type"] == "subscriptions"
        for path in (MARKET, ORDERFLOW):
            assert symbol in [each["symbol"] for each in opened(path, key=key).subscribe(symbol)["rejected"]]
        # Neither one who asks for all and what was sent last of it.
        late, back = opened(ORDERFLOW, key=key), opened(ORDERFLOW, key=key)
        reply = late.subscribe(features=["seq", "snapshot"])
        assert symbol not in reply["positions"]
        # And one who comes back gets nothing of what is kept of it.
        place = {"epoch": reply["epoch"], "positions": {symbol: 1}}
        back.subscribe(features=["seq"], resume=place)
        assert back.ask({"action": "list"})["type"] == "subscriptions"
        pass_on_again([push], by="test")
        wait_until(lambda: api.ask(quote).status_code == 200)
    assert noticed(named) == ("activated", [symbol])
    # Like the candles of the time in between.
    again = opened(ORDERFLOW, key=key)
    assert again.subscribe(symbol, features=["seq"], resume=place)["recovered"] is True
    assert again.hear()["seq"] == 2
    ticker(symbol)
    assert named.hear()["symbol"] == symbol


async def speak(ticker: Ticker) -> asyncio.Task[None]:
    """The engine tells of itself again as long as the task lives."""
    engine, bus = ticker.runner.engine, ticker.runner.bus

    async def keep_telling() -> None:
        while True:
            status = status_of(engine, now_ms(), "", bus.journal_position.epoch)
            bus.tell(status)
            await asyncio.sleep(0.1)

    return asyncio.create_task(keep_telling())


@pytest.mark.served
def test_loss_and_return_of_the_engine_are_told_to_everybody_once(
    opened: Open, ticker: Ticker, key: str, symbol: str, other: str
) -> None:
    """Over Redis the engine beside the service is ended; in one process it is its own tasks that end."""
    one, both, all_, signals, late = (
        opened(path, key=key) for path in (MARKET, MARKET, ORDERFLOW, SIGNALS, MARKET)
    )
    one.subscribe(symbol)
    both.subscribe(other, symbol)
    all_.subscribe()
    signals.subscribe()
    symbols = ([symbol], sorted([other, symbol]), ["*"], [symbol])
    # As if what makes the engine speak had broken for good.
    ticker.server.run(stop_engine_tasks("market status", "market clock"))
    assert [noticed(socket) for socket in (one, both, all_)] == [("stale", each) for each in symbols[:3]]
    late.subscribe(symbol)
    assert noticed(late) == ("stale", [symbol])
    telling = ticker.server.run(speak(ticker))
    assert [noticed(socket) for socket in (one, both, all_, late)] == [("live", each) for each in symbols]
    ticker(symbol)
    assert one.hear()["symbol"] == symbol
    assert signals.is_open
    assert not telling.done()
