"""A service that has just been started, with nothing in it yet."""

from __future__ import annotations

import pytest
from time_machine import Traveller

from tests.client import Api

from .answers import refusal

pytestmark = pytest.mark.services


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/symbols", {"items": [], "count": 0}),
        ("/api/signals?status=all", {"items": [], "count": 0}),
        ("/api/news", {"items": []}),
    ],
)
def test_empty_feeds_have_no_items(api: Api, path: str, body: object) -> None:
    assert api.ask(path).json() == body


def test_no_symbol_is_known(api: Api) -> None:
    message = refusal(api.ask("/api/market/EURUSD"), 404, "symbol_not_found", field="symbol")

    assert "Did you mean" not in message


def test_uptime_grows_by_a_second_a_second(clock: Traveller, api: Api) -> None:
    at_first = api.ask("/api/session").json()["uptime_seconds"]
    clock.shift(90.9)

    assert (at_first, api.ask("/api/session").json()["uptime_seconds"]) == (0, 90)
