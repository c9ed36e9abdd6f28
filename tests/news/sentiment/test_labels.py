from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from hypothesis import given
from hypothesis import strategies as st

from news.labels import sentiment_label
from news.models import NewsItem
from tests.factories import make_news

ORDER = ("bearish", "neutral", "bullish")


@pytest.mark.parametrize(
    ("score", "label"),
    [
        (1.0, "bullish"),
        (0.15, "bullish"),
        (0.1499999999, "neutral"),
        (0.0, "neutral"),
        (-0.0, "neutral"),
        (-0.1499999999, "neutral"),
        (-0.15, "bearish"),
        (-1.0, "bearish"),
    ],
)
def test_label_at_the_thresholds(score: float, label: str) -> None:
    assert sentiment_label(score) == label


@given(st.floats(-1, 1))
def test_label_of_the_opposite_score_is_the_opposite(score: float) -> None:
    assert ORDER.index(sentiment_label(score)) == 2 - ORDER.index(sentiment_label(-score))


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_higher_score_never_has_a_lower_label(one: float, other: float) -> None:
    low, high = sorted((one, other))

    assert ORDER.index(sentiment_label(low)) <= ORDER.index(sentiment_label(high))


def test_unscored_item_has_no_label() -> None:
    assert NewsItem(sentiment_score=None).sentiment == ""


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
    ],
)
def test_bad_item_is_refused_by_the_database(name: str, bad: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        make_news(**bad)


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["draft", "rejected"])
def test_item_that_is_not_in_the_feed_needs_no_score(status: str) -> None:
    assert make_news(status=status, sentiment_score=None, model="").sentiment == ""


@pytest.mark.django_db
@pytest.mark.parametrize("score", [-1.0, 0.0, 1.0])
def test_scores_reach_from_minus_one_to_one(score: float) -> None:
    assert NewsItem.objects.get(pk=make_news(sentiment_score=score).pk).sentiment_score == score


@pytest.mark.django_db
def test_number_that_is_none_is_never_published() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        make_news(sentiment_score=float("nan"))
