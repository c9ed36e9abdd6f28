"""Which way a score points for an instrument: what is good for the yen is bad for USDJPY."""

from __future__ import annotations

import pytest

from news.calibration.outcomes import category_of, currency_of, side_of


@pytest.mark.parametrize(
    ("title", "category", "symbol", "kind", "side"),
    [
        ("Yen firms as intervention looms", "forex", "USDJPY", "forex", -1),
        ("USD/JPY drops as intervention looms", "forex", "USDJPY", "forex", 1),
        ("Dollar slips against the yen", "forex", "USDJPY", "forex", 1),
        ("Euro falls while the yen gains", "forex", "EURJPY", "forex", 1),
        ("Euro falls while the yen gains", "forex", "USDJPY", "forex", 0),
        ("Dollar firms, gold slips", "forex", "XAUUSD", "commodity", -1),
        ("Loonie gains on oil", "forex", "USDCAD", "forex", -1),
        ("Loonie gains on oil", "forex", "WTI", "commodity", 0),
        ("Gold gains as the yen slips", "gold", "XAUUSD", "commodity", 1),
        ("Gold gains as the yen slips", "gold", "USDJPY", "forex", 0),
        ("Bitcoin gains on gold", "crypto", "BTCUSD", "crypto", 1),
        ("Oil jumps as OPEC cuts output", "macro", "WTI", "commodity", 0),
        ("Oil jumps as OPEC cuts output", "macro", "US500", "index", 1),
        ("Nvidia beats estimates", "macro", "NVDA", "stock", 1),
    ],
)
def test_a_score_is_about_one_asset(title: str, category: str, symbol: str, kind: str, side: int) -> None:
    assert side_of(title, category, symbol, kind, is_named=True) == side


@pytest.mark.parametrize("symbol", ["USDJPY", "USD/JPY", "USD_JPY", "USDJPY.r"])
def test_a_pair_is_known_however_its_symbol_is_written(symbol: str) -> None:
    assert side_of("Yen firms", "forex", symbol, "forex", is_named=True) == -1


def test_without_a_currency_only_the_pair_that_staff_chose_is_meant() -> None:
    title = "Ministry of finance warns speculators"
    assert side_of(title, "forex", "USDJPY", "forex", is_named=True) == 1
    assert side_of(title, "forex", "USDJPY", "forex", is_named=False) == 0


@pytest.mark.parametrize(
    ("title", "currency"),
    [
        ("Sterling and euro rise", "GBP"),
        ("EUR/JPY slips", "EUR"),
        ("Australian dollar eases", "AUD"),
        ("Gold", ""),
    ],
)
def test_the_currency_is_the_one_named_first(title: str, currency: str) -> None:
    assert currency_of(title) == currency


@pytest.mark.parametrize(
    ("symbol", "kind", "category"),
    [("XAGUSD", "commodity", "gold"), ("WTI", "commodity", ""), ("AAPL", "stock", "macro")],
)
def test_category_of_an_instrument(symbol: str, kind: str, category: str) -> None:
    assert category_of(symbol, kind) == category
