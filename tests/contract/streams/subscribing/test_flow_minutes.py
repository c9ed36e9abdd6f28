"""What /ws/orderflow sends adds up to what GET /api/orderflow answers."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from time_machine import Traveller

from core.clock import now_ms
from market.prices.records import Tick
from tests.client import Api, Server
from tests.contract.streams.client import ORDERFLOW, Frame
from tests.contract.streams.conftest import Open
from tests.contract.streams.ticker import Ticker
from tests.factories import make_instrument
from tests.patience import wait_until

NAMES = ("bid_volume", "ask_volume", "delta")
# Seconds between the ticks; size and side of each, and how far the bid moves.
TICKS = [
    *((0, 2.5, 1, 1), (3, 0.1, -1, -1), (9, 0.25, 1, 1), (11, 0.2, 1, 0), (20, 1.75, -1, -1)),
    *((31, 0.3, -1, 1), (0, 0.7, 1, 1), (4, 4.0, 0, -1), (50, 8.125, 1, 1), (61, 1.0, -1, -1)),
]


def exact(values: Sequence[float]) -> Decimal:
    return sum((Decimal(repr(value)) for value in values), Decimal())


def by_minute(frames: list[Frame]) -> list[dict[str, Any]]:
    minutes = dict.fromkeys(frame["time"] // 60_000 for frame in frames)
    found = []
    for minute in minutes:
        own = [frame for frame in frames if frame["time"] // 60_000 == minute]
        sums: dict[str, Any] = {name: exact([frame[name] for frame in own]) for name in NAMES}
        found.append(sums | {"cumulative_delta": Decimal(repr(own[-1]["cumulative_delta"]))})
    return found


@pytest.mark.served
@pytest.mark.parametrize("source", ["trades", "tick_rule"])
def test_frames_add_up_to_the_minutes(
    clock: Traveller, opened: Open, service: Server, ticker: Ticker, key: str, source: str
) -> None:
    symbol = f"SUM{source[:5].upper()}"
    make_instrument(symbol, order_flow_source=source, volume_kind="traded")
    socket = opened(ORDERFLOW, key=key)
    socket.subscribe(symbol)
    bid = 1.0
    for after_s, volume, side, move in TICKS:
        clock.shift(after_s)
        bid = round(bid + move / 1000, 5)
        service.run(ticker.push([Tick(symbol, bid, round(bid + 0.0002, 5), now_ms(), volume, side)]))
    frames = [socket.hear() for _ in range(9)]
    clock.shift(65)

    def items() -> list[dict[str, Any]]:
        with Api(service, key) as api:
            found: list[dict[str, Any]] = api.ask(f"/api/orderflow/{symbol}").json()["items"]
        return found

    told = by_minute(frames)
    wait_until(lambda: len(items()) >= len(told))
    answered = [
        {name: Decimal(repr(float(item[name]))) for name in (*NAMES, "cumulative_delta")} for item in items()
    ]
    assert [item for item in answered if item["bid_volume"] or item["ask_volume"]] == told
    assert len(told) == 4
    assert answered[len(told) - 1]["cumulative_delta"] == told[-1]["cumulative_delta"]
