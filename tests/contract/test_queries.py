"""How often each path asks the database, once its caller is known."""

from __future__ import annotations

import pytest

from market.api.symbols import EXPANSIONS
from tests.client import Api
from tests.databases.queries import count_queries
from tests.factories import (
    make_account,
    make_instrument,
    make_key,
    make_news,
    make_signal,
    put_candles,
    put_quote,
)

from .published import SHOWN, make_shown

HOUR_MS = 3_600_000


@pytest.fixture(scope="module", autouse=True)
def rows(shared: Api) -> None:
    instrument = make_instrument("EURUSD")
    put_quote("EURUSD")
    put_candles("EURUSD", "1h", [number * HOUR_MS for number in range(500)])
    for number in range(3):
        make_signal(instrument)
        make_signal(instrument, status="closed")
        make_news(f"Item {number}").symbols.add(instrument)
    make_shown(instrument)
    shared.ask("/api/symbols")
    shared.ask("/api/publishers/marta")
    shared.ask("/api/analysis/EURUSD")


@pytest.mark.parametrize(
    ("path", "queries"),
    [
        ("/api/symbols", 0),
        (f"/api/symbols?expand={','.join(EXPANSIONS)}", 0),
        ("/api/market/EURUSD?bars=500", 0),
        ("/api/market/EURUSD/quote", 0),
        # Of what kind its prices are, and where the page ends: twice each, as it has no quote stored and few
        # candles.
        ("/api/market/EURUSD/history", 4),
        ("/api/market/NOSUCH/quote", 0),
        ("/api/quotes", 0),
        ("/api/quotes?symbols=EURUSD,NOSUCH", 0),
        ("/api/orderflow/EURUSD", 1),
        ("/api/orderflow/EURUSD?start=2026-11-18T10:00:00Z&end=2026-11-18T12:00:00Z", 3),
        ("/api/orderflow/NOSUCH", 0),
        ("/api/signals?status=all", 1),
        ("/api/signals?status=closed&symbol=EURUSD", 1),
        ("/api/signals?user=marta&status=all", 1),
        ("/api/signals?user=nobody", 3),
        (f"/api/signals/{SHOWN}", 1),
        ("/api/signals/none", 0),
        (f"/api/signals/{SHOWN}/proof", 8),
        ("/api/signals/none/proof", 0),
        ("/api/signals/ledger", 2),
        ("/api/publishers/marta", 1),
        ("/api/publishers/nobody", 2),
        ("/api/news", 1),
        ("/api/news?category=forex,gold&expand=id,url,source,summary,model", 1),
        ("/api/news?expand=symbols", 1),
        ("/api/news?category=forex,gold&expand=symbols&start=0&end=4000000000000", 1),
        ("/api/signals?status=all&symbol=EURUSD&user=marta&start=0", 1),
        ("/api/signals?status=closed&user=marta&closed_start=0", 1),
        ("/api/analysis/EURUSD", 1),
        ("/api/session", 1),
        ("/api/limits", 1),
        ("/api/nothing", 0),
    ],
)
def test_queries_of_a_warm_path(shared: Api, path: str, queries: int) -> None:
    with count_queries() as asked:
        shared.ask(path)
    assert len(asked) == queries, asked


def test_cold_key_costs_one_query_and_at_most_a_look_at_the_events(shared: Api) -> None:
    key = make_key(make_account(tier="roomy"))
    with count_queries() as asked:
        shared.ask("/api/symbols", key=key)
    events = [query for query in asked if '"accounts_controlevent"' in query]
    assert len(asked) - len(events) == 1, asked
    # The round that reads them for everybody may have been first.
    assert len(events) <= 1, asked


def test_malformed_key_costs_none(shared: Api) -> None:
    with count_queries() as asked:
        shared.ask("/api/symbols", key="tw_live_typo")
    assert asked == []
