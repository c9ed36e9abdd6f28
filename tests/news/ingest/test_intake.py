"""Stories become drafts, each once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from news.ingest.intake import IntakeTally, judge, read, store, take_change
from news.models import ItemScore, NewsItem, Outcome, Source
from news.scoring import Scorer
from news.sentiment import Score
from tests.factories import make_instrument, make_news
from tests.patience import PATIENCE_S

from .made_feeds import POLLED_AT, feed_of, half_up, make_entry, make_source, no_model, take, titles

pytestmark = [pytest.mark.django_db, pytest.mark.services]


def poll(source: Source, *entries: object, scorer: Scorer = half_up, days: float = 0) -> IntakeTally:
    return take(source, feed_of(*entries), POLLED_AT + timedelta(days=days), scorer)  # type: ignore[arg-type]


def test_a_story_becomes_a_draft_with_score_category_and_symbols() -> None:
    make_instrument("XAUUSD")
    make_instrument("XAGUSD", active=False)
    tally = poll(make_source(), make_entry("Gold and silver steady", link="https://wire.example/gold"))
    item, score = NewsItem.objects.get(), ItemScore.objects.get()
    assert (tally.new, tally.published) == (1, 0)
    assert (item.title, item.status, item.category) == ("Gold and silver steady", "draft", "gold")
    assert (item.source, item.url) == ("Example Wire", "https://wire.example/gold")
    assert (item.sentiment_score, item.model, item.published_at) == (0.5, "test", POLLED_AT)
    assert [each.symbol for each in item.symbols.all()] == ["XAUUSD"]
    assert (score.title, score.score, score.model) == ("Gold and silver steady", 0.5, "test")
    assert (score.version, score.by) == ("1", "")


@pytest.mark.parametrize(("language", "scorer"), [("en", no_model), ("other", half_up)])
def test_without_a_model_for_its_language_it_waits_for_staff(language: str, scorer: Scorer) -> None:
    poll(make_source(trust="publish", language=language), "Gold steadies", scorer=scorer)
    item = NewsItem.objects.get()
    assert (item.status, item.sentiment_score, item.model) == ("draft", None, "")
    assert not ItemScore.objects.exists()


@pytest.mark.parametrize(
    ("hint", "title", "category"),
    [("crypto", "A quiet week", "crypto"), ("crypto", "Gold up", "gold"), ("", "A quiet week", "macro")],
)
def test_the_sources_category_is_for_titles_that_do_not_tell(hint: str, title: str, category: str) -> None:
    poll(make_source(category=hint), title)
    assert NewsItem.objects.get().category == category


def test_a_trusted_source_publishes_by_itself_what_is_about_something_we_know() -> None:
    tally = poll(make_source(trust="publish"), "Gold steadies", "Mayor opens bridge")
    assert (tally.published, titles(status="published")) == (1, ["Gold steadies"])
    assert titles(status="draft") == ["Mayor opens bridge"]
    assert Outcome.objects.count() == 2


def test_the_same_feed_again_brings_nothing() -> None:
    source = make_source()
    entries = ["Gold steadies", "Silver slips", "Euro firms"]
    assert poll(source, *entries).new == 3
    assert poll(source, *entries) == IntakeTally(known=3)
    assert NewsItem.objects.count() == ItemScore.objects.count() == 3


def test_a_guid_is_known_for_good_and_the_sources_own() -> None:
    source, later = make_source("One"), POLLED_AT + timedelta(days=20)
    poll(source, make_entry("Gold steadies", guid="7"), make_entry("Euro up", guid="7"))
    poll(source, make_entry("Gold steadies", guid="7", at=later), days=20)
    assert titles() == ["Gold steadies"]
    poll(make_source("Two"), make_entry("Silver slips", guid="7"))
    assert titles() == ["Gold steadies", "Silver slips"]


def test_the_same_address_is_the_same_story_unless_all_entries_share_it() -> None:
    poll(make_source("One"), make_entry("Gold steadies", link="https://wire.example/7?utm_source=one"))
    poll(make_source("Two"), make_entry("Bullion calm", link="https://www.wire.example/7"))
    assert titles() == ["Gold steadies"]
    shared = [make_entry(title, title, "https://wire.example/") for title in ("Silver slips", "Euro firms")]
    assert poll(make_source("Three"), *shared).new == 2


@pytest.mark.parametrize(("days", "stories"), [(2, 1), (2.001, 2)])
def test_nearly_the_same_title_within_two_days_is_the_same_story(days: float, stories: int) -> None:
    poll(make_source("One"), "Gold steadies near record as traders await US data")
    again = "Gold steadies near a record as traders await US data - Other Wire"
    poll(make_source("Two"), make_entry(again, at=POLLED_AT + timedelta(days=days)), days=days)
    assert NewsItem.objects.count() == stories


@pytest.mark.parametrize("status", ["draft", "published", "rejected"])
def test_what_staff_wrote_or_rejected_does_not_come_back(status: str) -> None:
    make_news("Gold steadies near record high", status=status, published_at=POLLED_AT)
    assert poll(make_source(), "Gold steadies near record high").new == 0


def test_what_is_too_old_is_not_taken_and_counted() -> None:
    tally = poll(make_source(), make_entry("Gold steadies", at=POLLED_AT - timedelta(days=8)), "Euro firms")
    assert (tally.new, tally.old) == (1, 1)
    assert str(tally) == "1 new, 1 too old"


def test_a_draft_takes_its_new_title_and_a_new_score() -> None:
    source = make_source()
    poll(source, make_entry("Gold up", guid="7"))
    tally = poll(source, make_entry("Gold falls after all", guid="7"))
    assert (titles(), tally) == (["Gold falls after all"], IntakeTally(changed=1))
    assert [score.title for score in ItemScore.objects.order_by("pk")] == ["Gold up", "Gold falls after all"]


@pytest.mark.parametrize("chosen", ["nothing", "category", "symbols"])
def test_a_draft_is_filed_anew_by_its_new_title_where_staff_chose_nothing(chosen: str) -> None:
    euro, _ = (make_instrument(symbol) for symbol in ("EURUSD", "XAUUSD"))
    source = make_source()
    poll(source, make_entry("Silver steadies", guid="7"))
    if chosen == "category":
        NewsItem.objects.update(category="macro")
    elif chosen == "symbols":
        NewsItem.objects.get().symbols.set([euro])
    take(source, feed_of(make_entry("Gold falls after all", guid="7")), POLLED_AT, by_category)
    item, category = NewsItem.objects.get(), "macro" if chosen == "category" else "gold"
    assert (item.title, item.category, item.model) == ("Gold falls after all", category, category)
    assert [each.symbol for each in item.symbols.all()] == ["EURUSD" if chosen == "symbols" else "XAUUSD"]


@pytest.mark.parametrize("decided", [{"status": "rejected"}, {"status": "published"}, {"category": "macro"}])
def test_what_staff_decide_while_a_model_is_asked_holds(decided: dict[str, str]) -> None:
    source = make_source()
    poll(source, make_entry("Gold up", guid="7"))
    reading = read(source, feed_of(make_entry("Gold falls after all", guid="7")), POLLED_AT)
    judged = judge(source, reading, by_category)
    NewsItem.objects.update(**decided)
    store(source, reading, judged)
    item = NewsItem.objects.get()
    wanted = ("Gold falls after all", "") if "category" in decided else ("Gold up", "test")
    assert (item.title, item.model) == wanted
    assert {name: getattr(item, name) for name in decided} == decided


@pytest.mark.parametrize("decided", [{"status": "rejected"}, {"title": "Gold, says the desk"}])
def test_what_staff_decide_in_the_same_moment_holds(decided: dict[str, str]) -> None:
    source = make_source()
    poll(source, make_entry("Gold up", guid="7"))
    looked_at = NewsItem.objects.get()
    (story,) = read(source, feed_of(make_entry("Gold falls after all", guid="7")), POLLED_AT).to_judge
    NewsItem.objects.update(**decided)
    assert not take_change(looked_at, story, None, source, {})
    assert NewsItem.objects.filter(model="test", **({"title": "Gold up"} | decided)).exists()


def by_category(title: str, category: str) -> Score:
    return Score(0.5, category, "1")


@pytest.mark.parametrize(
    "decided",
    [
        {"status": "published"},
        {"status": "rejected"},
        {"model": "staff", "sentiment_score": -0.2},
        {"title": "Gold rises, says the desk"},
    ],
)
def test_what_staff_decided_keeps_its_title(decided: dict[str, Any]) -> None:
    source = make_source()
    poll(source, make_entry("Gold up", guid="7"))
    NewsItem.objects.update(**decided)
    assert poll(source, make_entry("Gold falls after all", guid="7")) == IntakeTally(known=1)
    assert NewsItem.objects.filter(**{"title": "Gold up"} | decided).exists()


def test_the_model_is_asked_only_about_what_is_new() -> None:
    asked: list[str] = []

    def scorer(title: str, category: str) -> None:
        asked.append(f"{category}: {title}")

    source = make_source()
    poll(source, "Gold steadies", scorer=scorer)
    poll(source, "Gold steadies", "Euro firms", scorer=scorer)
    assert asked == ["gold: Gold steadies", "forex: Euro firms"]


def test_a_full_feed_costs_few_queries(django_assert_max_num_queries: object) -> None:
    make_instrument("XAUUSD")
    source = make_source()
    words = [f"{word}{number}" for number in range(50) for word in ("alpha", "beta", "gamma", "delta")]
    entries = [make_entry(f"Gold {one} {other}") for one, other in zip(words, reversed(words), strict=True)]
    with django_assert_max_num_queries(16):  # type: ignore[operator]
        assert poll(source, *entries).new == 200


AT_ONCE = 4


@pytest.mark.django_db(transaction=True)
def test_one_story_of_many_feeds_at_once_is_taken_once() -> None:
    sources = [make_source(f"Wire {number}") for number in range(AT_ONCE)]
    stories = ("Gold steadies near the tin record", "Euro firms on oak exports")
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for title in stories:
            barrier = Barrier(AT_ONCE)
            tallies = [*threads.map(lambda source: take_at(barrier, source, title), sources)]  # noqa: B023
            assert sum(tally.new for tally in tallies) == 1
    assert NewsItem.objects.count() == len(stories)


def take_at(barrier: Barrier, source: Source, title: str) -> IntakeTally:
    """Every one has read, and found it new, before the first of them stores."""
    try:
        reading = read(source, feed_of(title), POLLED_AT)
        judged = judge(source, reading, half_up)
        barrier.wait(PATIENCE_S)
        return store(source, reading, judged)
    finally:
        connection.close()
