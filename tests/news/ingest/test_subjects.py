"""The subjects of titles."""

from __future__ import annotations

import pytest

from news.ingest.stories import NAMES, find_subjects

KNOWN = frozenset(
    (
        *("EURUSD", "GBPUSD", "USDJPY", "USDCHF", "AUDUSD", "NZDUSD", "USDCAD", "EURGBP", "EURJPY"),
        *(
            "XAUUSD",
            "XAGUSD",
            "BTCUSD",
            "ETHUSD",
            "SOLUSD",
            "WTI",
            "US500",
            "US100",
            "US30",
            "GER40",
            "UK100",
        ),
        *("AAPL", "MSFT", "NVDA", "TSLA"),
    )
)


@pytest.mark.parametrize(
    ("title", "category", "symbols"),
    [
        ("EUR/USD slides below 1.08", "forex", "EURUSD"),
        ("EURUSD: sellers in control", "forex", "EURUSD"),
        ("EUR-JPY breaks out", "forex", "EURJPY"),
        ("XAU/USD price forecast: bulls eye $2,700", "gold", "XAUUSD"),
        ("BTC/USDT volumes soar", "crypto", "BTCUSD"),
        ("Euro firms as factory orders rebound", "forex", "EURUSD"),
        ("Sterling slides after services growth stalls", "forex", "GBPUSD"),
        ("The pound's worst week since May", "forex", "GBPUSD"),
        ("Yen little changed ahead of Bank of Japan minutes", "forex", "USDJPY"),
        ("Swiss franc gives back gains", "forex", "USDCHF"),
        ("Australian dollar eases after iron ore drops", "forex", "AUDUSD"),
        ("Canadian dollar firms with oil", "forex", "USDCAD WTI"),
        ("Dollar slips as yields ease", "forex", ""),
        ("U.S. dollar index falls", "forex", ""),
        ("Rupee hits record low", "forex", ""),
        ("Gold steadies as Fed rate cut bets fade", "gold", "XAUUSD"),
        ("Silver outpaces gold on solar demand", "gold", "XAGUSD XAUUSD"),
        ("Spot gold at record", "gold", "XAUUSD"),
        ("Precious metals: outlook for the week", "gold", ""),
        ("Bitcoin falls below $60,000 as yields rise", "crypto", "BTCUSD"),
        ("Bitcoin’s rally lifts ether", "crypto", "BTCUSD ETHUSD"),
        ("Ethereum developers postpone upgrade", "crypto", "ETHUSD"),
        ("Regulator opens consultation on stablecoins", "crypto", ""),
        ("Fed holds rates; gold slips", "macro", "XAUUSD"),
        ("Euro zone inflation cools", "macro", ""),
        ("ECB's Lagarde plays down euro strength", "macro", "EURUSD"),
        ("Jobless claims jump to two-year high", "macro", ""),
        ("Oil inventories swell as refinery runs slow", "macro", "WTI"),
        ("S&P 500 and Nasdaq close at record highs", "macro", "US500 US100"),
        ("FTSE 100 slips", "macro", "UK100"),
        ("Dow Jones gains 300 points", "macro", "US30"),
        ("Apple's profit beats estimates", "macro", "AAPL"),
        ("Nvidia shares lift Wall Street", "macro", "NVDA US500"),
    ],
)
def test_a_title_tells_its_category_and_symbols(title: str, category: str, symbols: str) -> None:
    assert find_subjects(title, KNOWN) == (category, tuple(symbols.split()))


@pytest.mark.parametrize(
    "title",
    [
        *("Swimmer wins gold in Paris", "Two gold medals for Kenya", "The silver lining of a long winter"),
        *("Goldman raises its target", "Euro 2028: the draw", "Olive oil prices soar in Spain"),
        *("A pound cake to remember", "The Big Apple marathon", "Dollar General opens stores"),
        *("Commuters fed up with delays", "Mayor opens bridge", "", "!!!", "日本語の見出し"),
        *("USDUSD", "FOR/YOU: what to read", "ABCDEF"),
    ],
)
def test_other_things_of_the_same_name_are_not_meant(title: str) -> None:
    assert find_subjects(title, KNOWN) == ("", ())


def test_a_symbol_is_named_once_if_it_is_traded_here_and_six_at_most() -> None:
    title = "Gold gold silver bitcoin ether solana euro yen franc"
    assert len(find_subjects(title, KNOWN).symbols) == 6
    assert find_subjects(title, {"XAUUSD"}).symbols == ("XAUUSD",)


def test_every_name_of_the_table_is_a_phrase_that_can_be_met() -> None:
    found = {name: find_subjects(name, KNOWN | {NAMES[name].symbol}) for name in NAMES}
    assert {name for name, subjects in found.items() if subjects.category != NAMES[name].category} == set()
