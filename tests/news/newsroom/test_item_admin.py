"""News in the back office."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.utils import timezone

from core.events.outbox import ControlEvent
from news.admin import NewsItemAdmin, SourceAdmin
from news.models import NewsItem, Source
from tests.accounts.back_office.office import Office, add_to, change, list_of, logged, said, text_of
from tests.factories import NOON, make_news
from tests.news.ingest.made_feeds import make_source

pytestmark = pytest.mark.django_db
UNSCORED = {"status": "draft", "sentiment_score": None, "model": ""}
FORM = {
    "title": "Dollar slips as yields ease",
    "category": "forex",
    "published_at_0": "2026-11-18",
    "published_at_1": "12:00:00",
    "initial-published_at_0": "2026-11-18",
    "initial-published_at_1": "12:00:00",
    "sentiment_score": "0.4",
}


def save(office: Office, item: NewsItem, **fields: Any) -> Any:
    return office.post(change(item), **FORM | fields)


def state_of(item: NewsItem) -> tuple[str, float | None, str]:
    item.refresh_from_db()
    return item.status, item.sentiment_score, item.model


def test_drafts_stand_first(office: Office) -> None:
    for status in ("published", "rejected", "draft"):
        make_news(f"It is {status}", status=status)
    page = text_of(office.get(list_of(NewsItem)))
    assert page.index("It is draft") < page.index("It is published") < page.index("It is rejected")


def test_an_unscored_draft_is_refused_in_words_and_holds_up_nothing(office: Office) -> None:
    unscored, scored = make_news("Gold rests", **UNSCORED), make_news(status="draft")
    answer = office.act("publish_chosen", unscored, scored)
    assert said(answer) == [
        "“Gold rests” has no sentiment score yet. Give it one, then publish it.",
        "Published: 1.",
    ]
    assert (state_of(unscored)[0], state_of(scored)[0]) == ("draft", "published")
    assert ControlEvent.objects.get(kind="news.published").by == "boss"
    office.act("reject_chosen", unscored, scored)
    assert (state_of(unscored)[0], state_of(scored)[0]) == ("rejected", "rejected")
    assert logged(unscored) == [("boss", "Rejected.")]
    assert sorted(logged(scored)) == [("boss", "Published."), ("boss", "Rejected.")]


def test_what_changed_after_the_list_was_read_is_not_published(office: Office) -> None:
    changed, same = make_news("Gold up", status="draft"), make_news("Euro firms", status="draft")
    page = text_of(office.get(list_of(NewsItem)))
    seen = re.findall(r'name="seen" value="([^"]+)"', page)
    assert len(seen) == 2
    NewsItem.objects.filter(pk=changed.pk).update(title="Gold falls after all")
    answer = office.act("publish_chosen", changed, same, seen=seen)
    assert said(answer) == [
        "“Gold falls after all” has changed since you read it. Nothing was done: read it again.",
        "Published: 1.",
    ]
    assert (state_of(changed)[0], state_of(same)[0]) == ("draft", "published")
    assert logged(changed) == []


def test_more_than_a_page_at_once_is_refused(office: Office) -> None:
    NewsItem.objects.bulk_create(NewsItem(title=f"n {n}", category="gold") for n in range(101))
    answer = office.act("reject_chosen", *NewsItem.objects.all())
    assert said(answer)[0] == "Choose 100 at most."
    assert not NewsItem.objects.filter(status="rejected").exists()


def test_a_score_of_staff_replaces_the_models_and_no_other_edit_does(office: Office) -> None:
    item = make_news(sentiment_score=0.4, model="lexicon")
    save(office, item, title="Dollar slips further")
    assert (state_of(item), item.title) == (("published", 0.4, "lexicon"), "Dollar slips further")
    save(office, item, title="Dollar slips further", sentiment_score="-0.5")
    assert (state_of(item), item.sentiment) == (("published", -0.5, "staff"), "bearish")
    assert ("boss", "Changed Sentiment score (now −0.5).") in logged(item)


@pytest.mark.parametrize(("status", "kept"), [("draft", False), ("published", True)])
def test_another_category_has_a_draft_scored_for_it(
    office: Office, django_capture_on_commit_callbacks: Any, status: str, kept: bool
) -> None:
    item = make_news("Dollar slips as yields ease", status=status, sentiment_score=0.4, model="lexicon")
    with django_capture_on_commit_callbacks(execute=True):
        save(office, item, category="macro")
    assert (state_of(item)[1:] == (0.4, "lexicon")) == kept
    assert item.category == "macro"


@pytest.mark.parametrize("score", ["1.01", "-2", "nan", "inf", "much"])
def test_a_score_out_of_range_is_refused_in_words(office: Office, score: str) -> None:
    item = make_news(sentiment_score=0.4, model="lexicon")
    assert "A score is a number from −1 to 1" in text_of(save(office, item, sentiment_score=score))
    assert state_of(item) == ("published", 0.4, "lexicon")


@pytest.mark.parametrize(("status", "keeps"), [("published", True), ("draft", False)])
def test_a_published_item_keeps_a_score_and_a_draft_may_lose_it(
    office: Office, status: str, keeps: bool
) -> None:
    item = make_news(status=status)
    assert ("Reject it first." in text_of(save(office, item, sentiment_score=""))) is keeps
    assert state_of(item) == (status, *((0.4, "test") if keeps else (None, "")))


def test_staff_write_news_themselves(office: Office) -> None:
    office.post(add_to(NewsItem), **FORM)
    item = NewsItem.objects.get()
    assert state_of(item) == ("draft", 0.4, "staff")
    assert logged(item) == [("boss", "Added.")]


def test_an_edit_does_not_undo_what_a_colleague_did_meanwhile(office: Office, monkeypatch: Any) -> None:
    item, save_model = make_news(), NewsItemAdmin.save_model

    def reject_meanwhile(*args: Any) -> None:
        NewsItem.objects.update(status="rejected")
        save_model(*args)

    monkeypatch.setattr(NewsItemAdmin, "save_model", reject_meanwhile)
    save(office, item, title="Dollar slips further")
    assert state_of(item)[0] == "rejected"


@pytest.mark.parametrize(("minutes_ahead", "is_taken"), [(60 * 24 * 365 * 5, False), (30, False), (2, True)])
def test_news_of_the_future_is_refused_in_words(office: Office, minutes_ahead: int, is_taken: bool) -> None:
    at = timezone.now() + timedelta(minutes=minutes_ahead)
    when = {"published_at_0": f"{at:%Y-%m-%d}", "published_at_1": f"{at:%H:%M:%S}"}
    answer = office.post(add_to(NewsItem), **FORM | when)
    assert NewsItem.objects.exists() is is_taken
    assert ("This is in the future. Enter the time at which" in text_of(answer)) is not is_taken


# News sources: what is wrong is seen, and put right.
SOURCE_FORM = {
    "name": "Example Wire",
    "address": "https://example-wire.example/rss",
    "language": "en",
    "trust": "review",
    "is_active": "on",
    "interval_s": "300",
}


def save_source(office: Office, source: Source, **fields: Any) -> Any:
    return office.client.post(change(source), SOURCE_FORM | fields)


def test_a_broken_source_stands_first_with_its_reason_and_each_has_a_state(office: Office) -> None:
    sources = {
        "new": make_source("New"),
        "paused": make_source("Paused", is_active=False),
        "failing": make_source("Failing", failures=1, interval_s=90),
        "broken": make_source("Broken", polled_at=NOON, failures=4, last_error="The answer was 404"),
    }
    make_source("Fine", polled_at=NOON, outcome="3 new, 12 known")
    page = text_of(office.get(list_of(Source)))
    assert page.index("Broken") < page.index("Fine")
    assert "The answer was 404, 4 times in a row" in page
    assert "3 new, 12 known" in page
    pages: Any = admin.site.get_model_admin(Source)
    assert [pages.state(source) for source in sources.values()] == list(sources)
    assert [pages.every(source) for source in sources.values()] == ["5 min", "5 min", "90 s", "5 min"]


def test_a_source_is_added_and_due_at_once_and_another_address_starts_anew(office: Office) -> None:
    office.client.post(add_to(Source), SOURCE_FORM)
    source = Source.objects.get()
    assert list(Source.objects.due(timezone.now())) == [source]
    later = timezone.now() + timedelta(hours=9)
    polled = {"etag": '"7"', "modified": "then", "failures": 5, "last_error": "Oops"}
    Source.objects.update(**polled, next_poll_at=later)
    save_source(office, source, address="https://other.example/rss")
    source.refresh_from_db()
    assert (source.etag, source.modified, source.failures, source.last_error) == ("", "", 0, "")
    assert source.next_poll_at <= timezone.now()


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("address", "https://example.com:22/", "Port 22 is none of 80, 443, 8080, 8443."),
        ("interval_s", "10", "Ensure this value is greater than or equal to 60."),
    ],
)
def test_what_cannot_be_polled_is_refused_in_words(
    office: Office, field: str, value: str, reason: str
) -> None:
    assert reason in text_of(office.client.post(add_to(Source), SOURCE_FORM | {field: value}))
    assert not Source.objects.exists()


def test_an_edit_leaves_alone_what_polling_wrote_meanwhile(office: Office, monkeypatch: Any) -> None:
    source, save_model = make_source(), SourceAdmin.save_model

    def poll_meanwhile(*args: Any) -> None:
        Source.objects.update(outcome="1 new", etag='"8"')
        save_model(*args)

    monkeypatch.setattr(SourceAdmin, "save_model", poll_meanwhile)
    save_source(office, source, trust="publish")
    source.refresh_from_db()
    assert (source.trust, source.outcome, source.etag) == ("publish", "1 new", '"8"')


def test_sources_are_paused_resumed_and_polled_at_will(office: Office) -> None:
    later = timezone.now() + timedelta(hours=9)
    source = make_source(next_poll_at=later)
    office.act("pause_chosen", source)
    assert said(office.act("poll_chosen", source))[-1] == "Paused, so not polled: Example Wire."
    assert not Source.objects.due(timezone.now()).exists()
    office.act("resume_chosen", source)
    assert Source.objects.due(timezone.now()).exists()
    assert [text for _, text in logged(source)] == ["Paused.", "Asked to poll now.", "Resumed."]
