"""Which titles tell the same story."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from news.ingest.similarity import WITHIN_MS, KnownTitles, are_near, title_key, words_of

TITLE = "Gold steadies near record high as traders await US inflation data"


def near(one: str, other: str) -> bool:
    return are_near(words_of(one), words_of(other))


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
    ("one", "other"),
    [
        (TITLE, "Gold steadies near record low as traders await US inflation data"),
        (TITLE, "Silver falls"),
        (TITLE, "Gold steadies near record high as traders await US jobs report"),
        ("Gold rises as dollar falls on weak US data", "Gold falls as dollar rises on weak US data"),
        (
            "Gold rises 1% on weak US data from Friday night",
            "Gold rises 2% on weak US data from Friday night",
        ),
        ("Fed cuts rates by 25 basis points in December", "Fed cuts rates by 50 basis points in December"),
        (
            "Fed does cut its main rate today as was expected",
            "Fed does not cut its main rate today as was expected",
        ),
        ("Week ahead in markets: what to watch Monday", "Week ahead in markets: what to watch Friday"),
        ("Euro climbs to a three-week high", "Euro climbs"),
        (
            "SEC approves spot ether ETF applications from BlackRock, Fidelity and VanEck",
            "SEC rejects spot ether ETF applications from BlackRock, Fidelity and VanEck",
        ),
        (
            "German manufacturing PMI rises above forecasts in November flash reading",
            "French manufacturing PMI rises above forecasts in November flash reading",
        ),
        (
            "Bank of Japan governor says weaker yen is good for exporters",
            "Bank of Japan governor says weaker yen is bad for exporters",
        ),
        (
            "China manufacturing PMI rises above forecasts in November flash reading",
            "China non-manufacturing PMI rises above forecasts in November flash reading",
        ),
        # The same words, and the opposite.
        (
            "Dollar gains on yen after US inflation data beat forecasts from all major banks",
            "Yen gains on dollar after US inflation data beat forecasts from all major banks",
        ),
        ("Bitcoin falls to 5,000 dollars in a week", "Bitcoin falls by 5,000 dollars in a week"),
        ("Asian stocks end the week mixed - Tokyo up", "Asian stocks end the week mixed - Tokyo down"),
        ("Asian Stocks End the Week Mixed - Tokyo Up", "Asian Stocks End the Week Mixed - Tokyo Down"),
        ("Bitcoin +5% in a day", "Bitcoin -5% in a day"),
        ("Fed sees rates at 2.5 in December", "Fed sees rates at 25 in December"),
    ],
)
def test_another_story_whatever_the_words_have_in_common(one: str, other: str) -> None:
    assert not near(one, other)
    assert not near(other, one)


def test_who_signs_is_no_part_of_the_key() -> None:
    assert title_key("Gold steadies – Reuters") == title_key("GOLD STEADIES")
    assert title_key("Gold steadies") != title_key("Gold slips")


def test_a_dash_within_the_story_stays() -> None:
    assert "tokyo" in words_of("Gold steadies - as yields ease and traders in Tokyo sell")


def test_the_same_is_told_anew_after_two_days() -> None:
    known = KnownTitles()
    known.add(TITLE, 0)
    assert known.has_near(TITLE, WITHIN_MS)
    assert known.has_near(TITLE, -WITHIN_MS)
    assert not known.has_near(TITLE, WITHIN_MS + 1)


VOCABULARY = ("gold", "euro", "the", "US", "U.S.", "three-week", "three", "week", "2.5", "25")
WORDS = st.lists(st.sampled_from(VOCABULARY), max_size=6)


@given(st.lists(WORDS, max_size=30), WORDS)
def test_what_is_known_is_what_is_near_one_of_the_titles(told: list[list[str]], title: list[str]) -> None:
    known = KnownTitles()
    for words in told:
        known.add(" ".join(words), 0)
    wanted = any(near(" ".join(title), " ".join(words)) for words in told)
    assert known.has_near(" ".join(title), 0) == (wanted and any(word != "the" for word in title))
