"""A token of a hundred-millionth of a dollar: every number in full, in every answer."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from core.clock import now_ms
from tests.client import Api
from tests.factories import make_instrument, make_signal, make_user, put_candles, put_quote

EXPONENT = re.compile(r"[0-9][eE][-+0-9]")
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


@pytest.fixture(scope="module", autouse=True)
def instruments(shared: Api) -> None:
    small = make_instrument("PEPEUSD", type="crypto", digits=8, pip_size=Decimal("0.00000001"))
    put_quote("PEPEUSD", 0.00000931, 0.00000934)
    put_candles("PEPEUSD", "1m", [now_ms() // 60_000 * 60_000 - 60_000], price=0.00003)
    terms = {"entry": "0.00000934", "stop_loss": "0.00000900", "take_profit": "0.00000990"}
    make_signal(small, make_user("kleio"), **{name: Decimal(value) for name, value in terms.items()})


@pytest.mark.parametrize(
    "path",
    [
        "/api/symbols",
        "/api/market/PEPEUSD/quote",
        "/api/market/PEPEUSD?timeframe=1m",
        "/api/signals?symbol=PEPEUSD",
        "/openapi.json",
        "/asyncapi.json",
        "/status.json",
    ],
)
def test_numbers_have_no_exponent(shared: Api, path: str) -> None:
    response = shared.ask(path)

    assert response.status_code == 200
    assert not EXPONENT.search(TEXT.sub("", response.text))


def test_small_prices_are_written_in_full(shared: Api) -> None:
    assert (
        '"bid":0.00000931,"ask":0.00000934,"spread":0.00000003'
        in shared.ask("/api/market/PEPEUSD/quote").text
    )
    assert '"pip_size":0.00000001' in shared.ask("/api/symbols").text
    assert (
        '"entry":0.00000934,"stop_loss":0.000009,"take_profit":0.0000099'
        in shared.ask("/api/signals?symbol=PEPEUSD").text
    )
