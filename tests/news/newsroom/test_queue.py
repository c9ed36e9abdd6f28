"""The queue of drafts, and the calibration, in the back office."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone
from django.utils.html import escape

from news.models import ItemScore, NewsItem, Outcome
from news.newsroom import (
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
from tests.accounts.back_office.office import Office, change, logged, text_of
from tests.factories import NOON, make_instrument, make_news, make_user
from tests.news.ingest.made_feeds import half_up, no_model

pytestmark = [pytest.mark.django_db, pytest.mark.services]
QUEUE, CALIBRATION = "/admin/news/queue/", "/admin/news/calibration/"
# The newest drafts are on the page.
SHOWN = 30


def draft(title: str = "Gold steadies", **fields: Any) -> NewsItem:
    return make_news(title, **({"status": "draft"} | fields))


def act(office: Office, act: str, *items: NewsItem, **fields: Any) -> str:
    """The page that follows."""
    answer = office.post(QUEUE, act=act, item=[f"{item.pk}:{item.mark}" for item in items], **fields)
    assert answer.status_code == 302
    return text_of(office.get(answer["Location"]))


def test_drafts_stand_in_it_the_last_to_come_first(office: Office) -> None:
    first = draft("First", published_at=timezone.now() - timedelta(days=2, hours=10, minutes=1))
    second = draft("Second", published_at=timezone.now() - timedelta(minutes=24, seconds=5))
    first.symbols.add(make_instrument("XAUUSD"))
    make_news("Published")
    page = text_of(office.get(QUEUE))
    assert page.index("Second") < page.index("First")
    assert page.index(">24 min ago</time>") < page.index(">2 d ago</time>")
    assert "XAUUSD" in page
    assert f'id="item-{second.pk}" class="queue-item" tabindex="-1"' in page
    assert '<h2 id="title' in page
    assert ">Published<" not in page
    # The form of the acts, the one of the score, and the box to tick.
    assert page.count(f'name="item" value="{second.pk}:{second.mark}"') == 3
    form = {"title": "First again", "category": "gold", "sentiment_score": "0.4"}
    form |= {"published_at_0": "2026-11-18", "published_at_1": "12:00:00"}
    assert office.post(f"{change(first)}?queue", **form)["Location"] == QUEUE


@pytest.mark.parametrize(("name", "status"), [("publish", "published"), ("reject", "rejected")])
def test_drafts_are_decided_by_what_was_read_of_each_and_it_is_logged(
    office: Office, name: str, status: str
) -> None:
    other, changed, *items = (draft(title) for title in ("Other", "Changed", "One", "Two"))
    decided = draft("Decided")
    NewsItem.objects.filter(pk=changed.pk).update(title="Changed since")
    NewsItem.objects.filter(pk=decided.pk).update(status="published")
    page = act(office, name, *items, changed, decided, next=str(other.pk))
    assert at_hand(page) == other.pk
    assert "“Decided” is published already. Nothing was changed." in page
    assert sorted(NewsItem.objects.values_list("title", "status")) == [
        ("Changed since", "draft"),
        ("Decided", "published"),
        *(("One", status), ("Other", "draft"), ("Two", status)),
    ]
    assert [logged(item) for item in items] == [[("boss", f"{status.capitalize()}.")]] * 2
    assert logged(decided) == []


def at_hand(page: str) -> int:
    found = re.search(r'id="item-(\d+)"[^>]*aria-current="true"', page)
    assert found is not None
    return int(found[1])


def test_a_draft_whose_category_is_put_right_is_scored_for_it_and_stays_at_hand(office: Office) -> None:
    item = draft("Oil jumps as OPEC cuts output", category="forex", sentiment_score=0.9, model="test")
    newer = draft("Newer")
    page = act(office, "category:macro", item, next=str(newer.pk))
    item.refresh_from_db()
    assert (item.category, at_hand(page)) == ("macro", item.pk)
    assert item.sentiment_score is not None
    assert item.sentiment_score < 0
    assert [score.by for score in item.scores.all()] == ["boss"]
    assert logged(item) == [("boss", "Category macro.")]


def test_what_has_no_score_gets_one_of_staff_and_all_are_kept_with_their_author(office: Office) -> None:
    item = draft(sentiment_score=None, model="")
    draft("Other")
    page = act(office, "publish", item, next="")
    assert "has no sentiment score yet" in page
    assert at_hand(page) == item.pk
    act(office, "score", item, score="-0.4")
    item.refresh_from_db()
    assert (item.sentiment_score, item.model) == (-0.4, "staff")
    assert ItemScore.objects.get().by == "boss"
    assert logged(item) == [("boss", "Score -0.40.")]
    act(office, "score", item, score="0.7")
    page = text_of(office.get(change(item)))
    assert page.index("0.70") < page.index("-0.40")
    assert "asked by boss" in page


def refused_score(office: Office, item: NewsItem, score: str) -> str:
    answer = office.post(QUEUE, act="score", item=f"{item.pk}:{item.mark}", score=score)
    assert answer.status_code == 200
    return text_of(answer)


@pytest.mark.parametrize("score", ["", "much", "2", "nan", '"<b>'])
def test_another_score_is_refused_at_its_field_and_kept(office: Office, score: str) -> None:
    item = draft()
    draft("Other")
    page = refused_score(office, item, score)
    assert page.count("A score is a number from −1 to 1, such as 0.4.") == 1
    assert f'value="{escape(score)}" aria-invalid="true" aria-describedby="fault-{item.pk}"' in page
    assert at_hand(page) == item.pk
    assert logged(item) == []


def test_a_refusal_is_told_although_newer_drafts_have_taken_the_page(office: Office) -> None:
    item = draft()
    for number in range(SHOWN):
        draft(f"Newer {number}")
    assert "A score is a number from −1 to 1, such as 0.4." in refused_score(office, item, "2")


@pytest.mark.parametrize("name", ["publish", "reject", "category:gold", "score"])
@pytest.mark.parametrize(
    "change", [{"title": "Gold falls after all"}, {"summary": "It did."}, {"sentiment_score": -0.3}]
)
def test_what_changed_after_it_was_read_is_not_decided(
    office: Office, name: str, change: dict[str, Any]
) -> None:
    item = draft()
    NewsItem.objects.update(**change)
    page = act(office, name, item, score="0.9")
    assert "has changed since you read it. Nothing was done: read it again." in page
    assert at_hand(page) == item.pk
    assert list(NewsItem.objects.filter(status="draft", category="forex", **change)) == [item]
    assert (ItemScore.objects.count(), logged(item)) == (0, [])


@pytest.mark.parametrize("value", ["x", "-1", "9" * 40, "٣"])
def test_a_number_that_is_none_chooses_nothing(office: Office, value: str) -> None:
    assert office.post(QUEUE, act="publish", item=value, next=value).status_code == 302
    assert office.get(f"{QUEUE}?at={value}").status_code == 200


@pytest.mark.parametrize("name", ["", "delete", "category:stocks", "category:"])
def test_what_the_page_cannot_do_changes_nothing(office: Office, name: str) -> None:
    item = draft()
    assert "This page cannot do that." in act(office, name, item)
    assert "Choose at least one draft." in act(office, "publish")
    # A page that does not say what it showed.
    office.post(QUEUE, act="publish", item=str(item.pk))
    item.refresh_from_db()
    assert (item.status, item.category) == ("draft", "forex")


def test_a_hostile_title_is_text(office: Office) -> None:
    draft('<script>alert(1)</script>"><img src=x onerror=alert(1)>')
    page = text_of(office.get(QUEUE))
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_a_get_changes_nothing_and_a_forged_post_is_refused(office: Office) -> None:
    item = draft()
    office.get(f"{QUEUE}?act=publish&item={item.pk}")
    strict = Client(enforce_csrf_checks=True)
    strict.cookies["sessionid"] = office.client.cookies["sessionid"].value
    assert strict.post(QUEUE, {"act": "publish", "item": item.pk}).status_code == 403
    item.refresh_from_db()
    assert item.status == "draft"


@pytest.mark.parametrize(("page", "permission"), [(QUEUE, "change_newsitem"), (CALIBRATION, "view_newsitem")])
def test_only_those_who_may_get_in(page: str, permission: str) -> None:
    user = make_user(is_staff=True)
    assert Office(user).get(page).status_code == 403
    user.user_permissions.add(Permission.objects.get(codename=permission))
    user = type(user).objects.get(pk=user.pk)
    assert Office(user).get(page).status_code == 200
    assert Client().get(page).status_code == 302


def test_the_calibration_is_read_as_a_table(office: Office) -> None:
    said = {"horizon": "1h", "category": "gold", "score": 0.5, "label": "bullish", "symbols": "XAUUSD"}
    times = dict.fromkeys(("entered_at", "due_at", "settled_at"), NOON)
    Outcome.objects.create(item=make_news(), move_percent=-0.25, **said, **times)
    page = text_of(office.get(CALIBRATION))
    assert "−0.250%" in page
    assert page.count("too few") == 24


# Scores: every one is kept, and what was published keeps its own unless staff say so.
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
