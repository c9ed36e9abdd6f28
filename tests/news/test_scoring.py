"""Asking the sentiment model from the newsroom: whatever happens there, the news go on."""

from __future__ import annotations

import pytest

from news.scoring import patiently, score_by, score_title
from news.sentiment import Score, SentimentFailed
from tests.news.newsroom import half_up


class Failing:
    def __init__(self, fault: Exception) -> None:
        self.fault = fault

    def score(self, title: str, category: str = "") -> Score:
        raise self.fault


class Beyond:
    def score(self, title: str, category: str = "") -> Score:
        return Score(-7.0, "beyond", "")


def test_the_model_at_hand_scores_a_title() -> None:
    found = score_title("Gold surges to a record high", "gold")
    assert found is not None
    assert 0 < found.score <= 1
    assert found.model
    assert found.version


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            SentimentFailed("no answer"),
            "the sentiment model has no score: no answer",
        ),
        (ZeroDivisionError(), "The sentiment model broke on a title; staff score it"),
    ],
)
def test_where_a_model_has_no_score_the_title_is_left_to_staff(
    fault: Exception, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert score_by(Failing(fault), "Gold surges", "gold") is None
    assert said in caplog.text


def test_a_score_beyond_the_scale_is_brought_back() -> None:
    found = score_by(Beyond(), "Gold surges", "gold")
    assert found is not None
    assert found.score == -1


def test_a_model_that_takes_too_long_is_asked_no_more() -> None:
    assert patiently(half_up, patience_s=10)("Gold surges", "gold") is not None
    assert patiently(half_up, patience_s=0)("Gold surges", "gold") is None
