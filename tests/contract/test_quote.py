from __future__ import annotations

import re

from tests.client import Api
from tests.factories import make_instrument, put_quote
from tests.queries import count_queries


def test_quote_has_exactly_the_fields_of_the_specification(api: Api) -> None:
    make_instrument("EURUSD")
    put_quote("EURUSD", bid=1.0841, ask=1.08424)

    response = api.ask("/api/market/EURUSD/quote")

    assert response.status_code == 200
    body = response.json()
    assert set(body) == {"symbol", "bid", "ask", "spread", "timestamp"}
    assert (body["symbol"], body["bid"], body["ask"], body["spread"]) == ("EURUSD", 1.0841, 1.08424, 0.00014)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", body["timestamp"])


def test_warm_quote_asks_the_database_nothing(api: Api) -> None:
    make_instrument("EURUSD")
    put_quote("EURUSD")
    api.ask("/api/market/EURUSD/quote")

    with count_queries() as asked:
        api.ask("/api/market/EURUSD/quote")

    assert asked == []
