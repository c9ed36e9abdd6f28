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
        "Gold steadies near record high as traders await US inflation report data",
        "Gold steadies near a record high as traders await US inflation data",
        "Gold steadies near record high, as investors await US inflation data",
    ],
)
def test_the_same_story_in_nearly_the_same_words(other: str) -> None:
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


VOCABULARY = ("gold", "euro", "yen", "holds", "firm", "near", "record", "after", "data", "from", "china")
WORDS = st.lists(st.sampled_from(VOCABULARY), max_size=12)


@given(st.lists(WORDS, max_size=30), WORDS)
def test_the_index_misses_nothing_that_comparing_with_all_would_find(
    told: list[list[str]], title: list[str]
) -> None:
    known = KnownTitles()
    for words in told:
        known.add(" ".join(words), 0)
    wanted = any(are_near(tuple(title), tuple(words)) for words in told if words)
    assert known.has_near(" ".join(title), 0) == (wanted and bool(title))
