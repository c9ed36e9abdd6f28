"""The queue of drafts, and the calibration, in the back office."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone
from django.utils.html import escape

from news.models import ItemScore, NewsItem, Outcome
from tests.accounts.back_office.office import Office, change, logged, text_of
from tests.factories import NOON, make_instrument, make_news, make_user

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
    first, second = draft("First"), draft("Second")
    first.symbols.add(make_instrument("XAUUSD"))
    make_news("Published")
    page = text_of(office.get(QUEUE))
    assert page.index("Second") < page.index("First")
    assert "XAUUSD" in page
    assert f'id="item-{second.pk}" class="queue-item" tabindex="-1"' in page
    assert '<h2 id="title' in page
    assert ">Published<" not in page


def test_a_draft_has_its_age_in_the_form_of_every_age(office: Office) -> None:
    draft(published_at=timezone.now() - timedelta(days=2, hours=10, minutes=1))
    draft("Later", published_at=timezone.now() - timedelta(minutes=24, seconds=5))
    page = text_of(office.get(QUEUE))
    assert ">2 d ago</time>" in page
    assert ">24 min ago</time>" in page


@pytest.mark.parametrize(("name", "status"), [("publish", "published"), ("reject", "rejected")])
def test_a_draft_is_decided_and_it_is_logged(office: Office, name: str, status: str) -> None:
    item = draft()
    page = act(office, name, item)
    item.refresh_from_db()
    assert item.status == status
    assert f"{status.capitalize()}: “Gold steadies”." in page
    assert logged(item) == [("boss", f"{status.capitalize()}.")]


def test_several_are_decided_at_once(office: Office) -> None:
    items = [draft(f"Item {number}") for number in range(3)]
    act(office, "reject", *items[:2])
    assert sorted(NewsItem.objects.values_list("title", "status")) == [
        *(("Item 0", "rejected"), ("Item 1", "rejected")),
        ("Item 2", "draft"),
    ]


def test_none_chosen_is_said(office: Office) -> None:
    draft()
    assert "Choose at least one draft." in act(office, "publish")


def test_the_next_draft_is_the_one_at_hand(office: Office) -> None:
    older, newer = draft("Older"), draft("Newer")
    page = act(office, "publish", newer, next=str(older.pk))
    assert at_hand(page) == older.pk


def at_hand(page: str) -> int:
    found = re.search(r'id="item-(\d+)"[^>]*aria-current="true"', page)
    assert found is not None
    return int(found[1])


def test_a_draft_whose_category_is_put_right_stays_at_hand(office: Office) -> None:
    older, newer = draft("Older"), draft("Newer")
    page = act(office, "category:gold", older, next=str(newer.pk))
    older.refresh_from_db()
    assert (older.category, at_hand(page)) == ("gold", older.pk)
    assert logged(older) == [("boss", "Category gold.")]


def test_a_draft_is_scored_for_the_category_it_is_put_into(office: Office) -> None:
    item = draft("Oil jumps as OPEC cuts output", category="forex", sentiment_score=0.9, model="test")
    act(office, "category:macro", item)
    item.refresh_from_db()
    assert item.sentiment_score is not None
    assert item.sentiment_score < 0
    assert [score.by for score in item.scores.all()] == ["boss"]


def test_a_score_of_staff_is_kept_with_its_author(office: Office) -> None:
    item = draft(sentiment_score=None, model="")
    act(office, "score", item, score="-0.4")
    item.refresh_from_db()
    assert (item.sentiment_score, item.model) == (-0.4, "staff")
    assert ItemScore.objects.get().by == "boss"
    assert logged(item) == [("boss", "Score -0.40.")]


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


def test_an_unscored_draft_is_refused_in_words_and_stays_at_hand(office: Office) -> None:
    item = draft(sentiment_score=None, model="")
    draft("Other")
    page = act(office, "publish", item, next="")
    assert "has no sentiment score yet" in page
    assert at_hand(page) == item.pk


def test_what_a_colleague_decided_first_stays(office: Office) -> None:
    item = draft()
    NewsItem.objects.update(status="published")
    page = act(office, "reject", item)
    assert "“Gold steadies” is published already. Nothing was changed." in page
    item.refresh_from_db()
    assert (item.status, logged(item)) == ("published", [])


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


def test_each_of_several_is_decided_by_what_was_read_of_it(office: Office) -> None:
    read, changed = draft("Read"), draft("Changed")
    NewsItem.objects.filter(pk=changed.pk).update(title="Changed since")
    act(office, "publish", read, changed)
    assert set(NewsItem.objects.values_list("title", "status")) == {
        *(("Read", "published"), ("Changed since", "draft")),
    }


def test_the_page_sends_what_it_shows(office: Office) -> None:
    item = draft()
    page = text_of(office.get(QUEUE))
    # The form of the acts, the one of the score, and the box to tick.
    assert page.count(f'name="item" value="{item.pk}:{item.mark}"') == 3


def test_a_page_that_does_not_say_what_it_showed_decides_nothing(office: Office) -> None:
    item = draft()
    office.post(QUEUE, act="publish", item=str(item.pk))
    item.refresh_from_db()
    assert item.status == "draft"


@pytest.mark.parametrize("name", ["", "delete", "category:stocks", "category:"])
def test_an_unknown_act_changes_nothing(office: Office, name: str) -> None:
    item = draft()
    assert "This page cannot do that." in act(office, name, item)
    item.refresh_from_db()
    assert (item.status, item.category) == ("draft", "forex")


@pytest.mark.parametrize("value", ["x", "-1", "9" * 40, "٣"])
def test_a_number_that_is_none_chooses_nothing(office: Office, value: str) -> None:
    assert office.post(QUEUE, act="publish", item=value, next=value).status_code == 302
    assert office.get(f"{QUEUE}?at={value}").status_code == 200


def test_a_hostile_title_is_text(office: Office) -> None:
    draft('<script>alert(1)</script>"><img src=x onerror=alert(1)>')
    page = text_of(office.get(QUEUE))
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_saving_an_item_that_was_opened_here_leads_back_here(office: Office) -> None:
    item = draft()
    form = {
        "title": "Gold steadies again",
        "category": "gold",
        "published_at_0": "2026-11-18",
        "published_at_1": "12:00:00",
        "sentiment_score": "0.4",
    }
    assert office.post(f"{change(item)}?queue", **form)["Location"] == QUEUE


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
    Outcome.objects.create(
        item=make_news(),
        horizon="1h",
        category="gold",
        score=0.5,
        label="bullish",
        symbols="XAUUSD",
        entered_at=NOON,
        due_at=NOON,
        settled_at=NOON,
        move_percent=-0.25,
    )
    page = text_of(office.get(CALIBRATION))
    assert "−0.250%" in page
    assert page.count("too few") == 24


def test_an_item_shows_all_its_scores(office: Office) -> None:
    item = draft(sentiment_score=None, model="")
    act(office, "score", item, score="-0.4")
    item.refresh_from_db()
    act(office, "score", item, score="0.7")
    page = text_of(office.get(change(item)))
    assert page.index("0.70") < page.index("-0.40")
    assert "asked by boss" in page
