from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from hypothesis import given
from hypothesis import strategies as st

from news.labels import sentiment_label
from tests.factories import make_news

ORDER = ("bearish", "neutral", "bullish")


@given(st.floats(-1, 1))
def test_label_of_the_opposite_score_is_the_opposite(score: float) -> None:
    assert ORDER.index(sentiment_label(score)) == 2 - ORDER.index(sentiment_label(-score))


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_higher_score_never_has_a_lower_label(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert ORDER.index(sentiment_label(low)) <= ORDER.index(sentiment_label(high))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("news_score_is_within_one", {"sentiment_score": 1.0001}),
        ("news_score_is_within_one", {"sentiment_score": -1.0001}),
        ("news_score_is_within_one", {"sentiment_score": 7.0, "status": "draft"}),
        ("news_published_is_scored", {"sentiment_score": None}),
        ("news_published_is_scored", {"model": ""}),
        ("news_has_title", {"title": ""}),
        ("news_", {"sentiment_score": float("nan")}),
    ],
)
def test_bad_item_is_refused_by_the_database(name: str, bad: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        make_news(**bad)


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["draft", "rejected"])
def test_item_that_is_not_in_the_feed_needs_no_score(status: str) -> None:
    assert make_news(status=status, sentiment_score=None, model="").sentiment == ""
