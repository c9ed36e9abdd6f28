"""Scores: every one is kept, and what was published keeps its own unless staff say so."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from django.db import IntegrityError, transaction

from news.models import ItemScore, NewsItem
from news.newsroom.decisions import (
    AlreadyDecided,
    Unscored,
    ask_again,
    choose_category,
    override_score,
    publish,
    reject,
    take_answer,
)
from news.scoring import Scorer
from news.sentiment import Score
from tests.factories import make_news
from tests.news.ingest.made_feeds import half_up, no_model

pytestmark = [pytest.mark.django_db, pytest.mark.services]


def kept(item: NewsItem) -> list[tuple[float, str, str, str, bool]]:
    rows = ItemScore.objects.filter(item=item).order_by("pk")
    return [(row.score, row.model, row.version, row.by, row.is_taken) for row in rows]


def score_of(item: NewsItem) -> tuple[float | None, str]:
    item.refresh_from_db()
    return item.sentiment_score, item.model


def score_again(item: NewsItem, scorer: Scorer, *, replace_published: bool = False) -> bool:
    return take_answer(item, ask_again(item, scorer), by="ada", replace_published=replace_published)


def newer(title: str, category: str) -> Score:
    return Score(-0.8, "test", "2")


def test_a_draft_takes_the_newer_score_and_keeps_all_with_who_gave_them() -> None:
    item = make_news(status="draft")
    score_again(item, half_up)
    score_again(item, newer)
    assert score_of(item) == (-0.8, "test")
    override_score(item, -0.3, by="ada")
    assert score_of(item) == (-0.3, "staff")
    models = [(0.5, "test", "1", "ada", True), (-0.8, "test", "2", "ada", True)]
    scores = [*models, (-0.3, "staff", "", "ada", True)]
    assert kept(item) == scores
    with pytest.raises(IntegrityError, match="A score is added, never changed."), transaction.atomic():
        ItemScore.objects.update(score=0.9)
    assert kept(item) == scores
    item.delete()
    assert not ItemScore.objects.exists()


@pytest.mark.parametrize("replace", [False, True])
def test_scoring_again_does_not_rewrite_what_was_published_unless_staff_say_so(replace: bool) -> None:
    item = make_news(sentiment_score=0.4, model="test")
    assert score_again(item, newer, replace_published=replace) is replace
    assert score_of(item) == (-0.8 if replace else 0.4, "test")
    assert kept(item) == [(-0.8, "test", "2", "ada", replace)]


def test_a_model_that_cannot_tell_changes_nothing() -> None:
    item = make_news(sentiment_score=0.4, model="test")
    with pytest.raises(Unscored, match="cannot be scored by the model"):
        score_again(item, no_model)
    assert (score_of(item), kept(item)) == ((0.4, "test"), [])


@pytest.mark.parametrize("status", ["published", "rejected"])
@pytest.mark.parametrize(
    "act",
    [
        partial(publish, by="ada"),
        reject,
        lambda item, seen: choose_category(item, "gold", None, by="ada", seen=seen),
        lambda item, seen: override_score(item, 0.1, by="ada", seen=seen),
    ],
    ids=["publish", "reject", "category", "score"],
)
def test_what_is_decided_is_not_decided_again_from_a_stale_page(
    status: str, act: Callable[..., object]
) -> None:
    item = make_news("Gold steadies", status=status)
    with pytest.raises(AlreadyDecided, match=f"“Gold steadies” is {status} already. Nothing was changed."):
        act(item, seen=item.mark)
    item.refresh_from_db()
    assert (item.status, item.category, kept(item)) == (status, "forex", [])


@pytest.mark.parametrize(
    ("model", "score", "scored", "then"),
    [
        ("test", 0.4, Score(-0.8, "test", "2"), (-0.8, "test")),
        ("test", 0.4, None, (None, "")),
        ("staff", 0.4, Score(-0.8, "test", "2"), (0.4, "staff")),
        ("", None, Score(-0.8, "test", "2"), (None, "")),
    ],
)
def test_for_another_category_the_models_score_is_another(
    model: str, score: float | None, scored: Score | None, then: tuple[float | None, str]
) -> None:
    item = make_news(status="draft", category="macro", model=model, sentiment_score=score)
    choose_category(item, "forex", scored, by="ada", seen=item.mark)
    assert (score_of(item), item.category) == (then, "forex")
