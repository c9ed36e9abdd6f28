"""When stories were, and which of them are the same."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from news.ingest.parsing import read_time
from news.ingest.polling import pause
from news.ingest.stories import (
    NAMES,
    TOLD_ANEW_AFTER,
    SeenTitles,
    find_subjects,
    normalised,
    published_at,
    title_key,
    words_of,
)

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("told", "taken"),
    [
        (NOON - timedelta(hours=3, milliseconds=250), NOON - timedelta(hours=3, milliseconds=250)),
        (None, NOON),
        *((NOON + ahead, NOON) for ahead in (timedelta(seconds=1), timedelta(days=365_000))),
        (NOON - timedelta(days=7), NOON - timedelta(days=7)),
        (NOON - timedelta(days=7, milliseconds=1), None),
        (datetime.fromtimestamp(0, UTC), None),
    ],
)
def test_a_story_is_of_its_date_or_of_now_and_no_news_if_it_is_old(
    told: datetime | None, taken: datetime | None
) -> None:
    assert published_at(told, NOON) == taken


@pytest.mark.parametrize("fields", [(99999, 1, 1), (10_000, 1, 1), (0, 1, 1), (2026, 13, 1), (2026, 11, 99)])
def test_a_date_that_cannot_be_is_none_or_some_day(fields: tuple[int, int, int]) -> None:
    at = read_time((*fields, 0, 0, 0, 0, 1, 0))
    assert at is None or published_at(at, NOON) in (NOON, None)


@pytest.mark.parametrize(
    ("interval_s", "failures", "retry_after_s", "minutes"),
    [
        *((300, failures, 0, minutes) for failures, minutes in ((0, 5), (1, 10), (2, 20), (3, 40))),
        *((300, failures, 0, minutes) for failures, minutes in ((8, 1280), (9, 1440), (1_000_000, 1440))),
        (86_400, 5, 0, 1440),
        # What the server asks for is granted up to a day.
        *((300, 1, asked_s, minutes) for asked_s, minutes in ((7200, 120), (60, 10), (10**9, 1440))),
    ],
)
def test_each_failure_doubles_the_pause_up_to_a_day(
    interval_s: int, failures: int, retry_after_s: int, minutes: int
) -> None:
    assert pause(interval_s, failures, retry_after_s) == timedelta(minutes=minutes)


TITLE = "Gold steadies near record high as traders await US inflation data"


def near(one: str, other: str) -> bool:
    return normalised(words_of(one)) == normalised(words_of(other))


@pytest.mark.parametrize(
    "other",
    [
        TITLE,
        TITLE.upper(),
        f"{TITLE}!",
        f"{TITLE} - Reuters",
        f"{TITLE} | Kitco News",
        f"{TITLE} — The Example Wire",
        f"{TITLE} - reuters.com",
        "Gold steadies near a record high as traders await the U.S. inflation data",
        "Gold steadies near record high, as traders await US-inflation data",
    ],
)
def test_the_same_story_however_it_is_set(other: str) -> None:
    assert near(TITLE, other)
    assert near(other, TITLE)


@pytest.mark.parametrize(
    "titles",
    [
        "Gold steadies near record {high|low} as traders await US inflation data",
        "Gold steadies near record high as traders await US {inflation data|jobs report}",
        "{Gold steadies near record high as traders await US inflation data|Silver falls}",
        "Gold {rises|falls} as dollar {falls|rises} on weak US data",
        "Gold rises {1|2}% on weak US data from Friday night",
        "Fed cuts rates by {25|50} basis points in December",
        "Fed does {|not }cut its main rate today as was expected",
        "Week ahead in markets: what to watch {Monday|Friday}",
        "Euro climbs{ to a three-week high|}",
        "SEC {approves|rejects} spot ether ETF applications from BlackRock, Fidelity and VanEck",
        "{German|French} manufacturing PMI rises above forecasts in November flash reading",
        "Bank of Japan governor says weaker yen is {good|bad} for exporters",
        "China {|non-}manufacturing PMI rises above forecasts in November flash reading",
        # The same words, and the opposite.
        "{Dollar|Yen} gains on {yen|dollar} after US inflation data beat forecasts from all major banks",
        "Bitcoin falls {to|by} 5,000 dollars in a week",
        "Asian stocks end the week mixed - Tokyo {up|down}",
        "Asian Stocks End the Week Mixed - Tokyo {Up|Down}",
        "Bitcoin {+|-}5% in a day",
        "Bitcoin {|-}5% in a day",
        "Fed sees rates at {2.5|25} in December",
    ],
)
def test_another_story_whatever_the_words_have_in_common(titles: str) -> None:
    one, other = (re.sub(r"\{(.*?)\|(.*?)\}", rf"\{number}", titles) for number in (1, 2))
    assert one != other
    assert not near(one, other)
    assert not near(other, one)


def test_who_signs_is_no_part_of_the_key() -> None:
    assert title_key("Gold steadies – Reuters") == title_key("GOLD STEADIES")
    assert title_key("Gold steadies") != title_key("Gold slips")


def test_a_dash_within_the_story_stays() -> None:
    assert "tokyo" in words_of("Gold steadies - as yields ease and traders in Tokyo sell")


@pytest.mark.parametrize("sign", [1, -1])
def test_the_same_is_told_anew_after_two_days(sign: int) -> None:
    known = SeenTitles()
    known.add(TITLE, NOON)
    assert known.has_near(TITLE, NOON + sign * TOLD_ANEW_AFTER)
    assert not known.has_near(TITLE, NOON + sign * (TOLD_ANEW_AFTER + timedelta(milliseconds=1)))


VOCABULARY = ("gold", "euro", "the", "US", "U.S.", "three-week", "three", "week", "2.5", "25")
WORDS = st.lists(st.sampled_from(VOCABULARY), max_size=6)


@given(st.lists(WORDS, max_size=30), WORDS)
def test_what_is_known_is_what_is_near_one_of_the_titles(told: list[list[str]], title: list[str]) -> None:
    known = SeenTitles()
    for words in told:
        known.add(" ".join(words), NOON)
    wanted = any(near(" ".join(title), " ".join(words)) for words in told)
    assert known.has_near(" ".join(title), NOON) == (wanted and any(word != "the" for word in title))


# The subjects of titles.
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
