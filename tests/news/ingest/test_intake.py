"""Stories become drafts, each once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

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

    tally = poll(make_source(), make_entry("Gold steadies", link="https://wire.example/gold"))

    item = NewsItem.objects.get()
    assert (tally.new, tally.published) == (1, 0)
    assert (item.title, item.status, item.category, item.source) == (
        "Gold steadies",
        "draft",
        "gold",
        "Example Wire",
    )
    assert (item.sentiment_score, item.model, item.url) == (0.5, "test", "https://wire.example/gold")
    assert [each.symbol for each in item.symbols.all()] == ["XAUUSD"]
    assert item.published_at == POLLED_AT


def test_its_score_has_model_version_and_title() -> None:
    poll(make_source(), "Gold steadies")
    score = ItemScore.objects.get()
    assert (score.title, score.score, score.model, score.version, score.by) == (
        "Gold steadies",
        0.5,
        "test",
        "1",
        "",
    )


def test_without_a_model_it_waits_for_staff() -> None:
    poll(make_source(trust="publish"), "Gold steadies", scorer=no_model)
    item = NewsItem.objects.get()
    assert (item.status, item.sentiment_score, item.model) == ("draft", None, "")
    assert not ItemScore.objects.exists()


def test_a_language_that_the_model_does_not_speak_is_not_scored() -> None:
    poll(make_source(language="other"), "Gold hält sich")
    assert NewsItem.objects.get().sentiment_score is None


def test_inactive_instruments_are_not_named() -> None:
    make_instrument("XAUUSD", active=False)
    poll(make_source(), "Gold steadies")
    assert not NewsItem.objects.get().symbols.exists()


@pytest.mark.parametrize(
    ("hint", "title", "category"),
    [("crypto", "A quiet week", "crypto"), ("crypto", "Gold up", "gold"), ("", "A quiet week", "macro")],
)
def test_the_sources_category_is_for_titles_that_do_not_tell(hint: str, title: str, category: str) -> None:
    poll(make_source(category=hint), title)
    assert NewsItem.objects.get().category == category


def test_a_trusted_source_publishes_by_itself() -> None:
    tally = poll(make_source(trust="publish"), "Gold steadies")
    assert (tally.published, NewsItem.objects.get().status) == (1, "published")
    assert Outcome.objects.count() == 2


def test_not_even_a_trusted_source_publishes_what_is_about_nothing_we_know() -> None:
    poll(make_source(trust="publish"), "Mayor opens bridge")
    assert NewsItem.objects.get().status == "draft"


def test_the_same_feed_again_brings_nothing() -> None:
    source = make_source()
    entries = ["Gold steadies", "Silver slips", "Euro firms"]
    assert poll(source, *entries).new == 3
    assert poll(source, *entries) == IntakeTally(known=3)
    assert NewsItem.objects.count() == ItemScore.objects.count() == 3


def test_a_guid_is_known_for_good() -> None:
    source = make_source()
    poll(source, make_entry("Gold steadies", guid="7"))
    poll(source, make_entry("Gold steadies", guid="7", at=POLLED_AT + timedelta(days=20)), days=20)
    assert NewsItem.objects.count() == 1


def test_a_guid_is_the_sources_own() -> None:
    poll(make_source("One"), make_entry("Gold steadies", guid="7"))
    poll(make_source("Two"), make_entry("Silver slips", guid="7"))
    assert titles() == ["Gold steadies", "Silver slips"]


def test_a_guid_twice_in_a_feed_is_one_story() -> None:
    assert poll(make_source(), make_entry("Gold up", guid="7"), make_entry("Euro up", guid="7")).new == 1


def test_the_same_address_is_the_same_story_whoever_tells_it() -> None:
    poll(make_source("One"), make_entry("Gold steadies", link="https://wire.example/7?utm_source=one"))
    poll(make_source("Two"), make_entry("Bullion calm", link="https://www.wire.example/7"))
    assert titles() == ["Gold steadies"]


def test_an_address_that_all_entries_share_tells_nothing() -> None:
    link = "https://wire.example/"
    entries = [make_entry(title, guid=title, link=link) for title in ("Gold steadies", "Euro firms")]
    assert poll(make_source(), *entries).new == 2


def test_nearly_the_same_title_within_two_days_is_the_same_story() -> None:
    poll(make_source("One"), "Gold steadies near record as traders await US data")
    poll(make_source("Two"), "Gold steadies near a record as traders await US data - Other Wire")
    assert NewsItem.objects.count() == 1


def test_nearly_the_same_title_later_is_news() -> None:
    title = "Gold steadies near record as traders await US data"
    poll(make_source("One"), make_entry(title, guid="1", at=POLLED_AT))
    poll(
        make_source("Two"),
        make_entry(title, guid="2", at=POLLED_AT + timedelta(days=2, milliseconds=1)),
        days=2.1,
    )
    assert NewsItem.objects.count() == 2


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


def test_a_new_title_is_scored_for_the_category_that_staff_chose() -> None:
    source = make_source()
    poll(source, make_entry("Gold up", guid="7"))
    NewsItem.objects.update(category="macro")
    take(source, feed_of(make_entry("Gold falls after all", guid="7")), POLLED_AT, by_category)
    assert NewsItem.objects.get().model == "macro"


def test_a_draft_is_filed_anew_by_its_new_title() -> None:
    for symbol in ("EURUSD", "XAUUSD"):
        make_instrument(symbol)
    source = make_source()
    poll(source, make_entry("EUR/USD steadies", guid="7"))
    take(source, feed_of(make_entry("Gold falls after all", guid="7")), POLLED_AT, by_category)
    item = NewsItem.objects.get()
    assert (item.category, item.model) == ("gold", "gold")
    assert [each.symbol for each in item.symbols.all()] == ["XAUUSD"]


def test_symbols_that_staff_chose_stay() -> None:
    chosen, _ = make_instrument("EURUSD"), make_instrument("XAUUSD")
    source = make_source()
    poll(source, make_entry("Gold up", guid="7"))
    NewsItem.objects.get().symbols.set([chosen])
    poll(source, make_entry("Gold falls after all", guid="7"))
    item = NewsItem.objects.get()
    assert (item.title, [each.symbol for each in item.symbols.all()]) == ("Gold falls after all", ["EURUSD"])


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


def test_what_staff_scored_keeps_its_title_and_their_score() -> None:
    source = make_source()
    poll(source, make_entry("Gold up", guid="7"))
    NewsItem.objects.update(model="staff", sentiment_score=-0.2)
    assert poll(source, make_entry("Gold falls after all", guid="7")) == IntakeTally(known=1)
    assert NewsItem.objects.get().sentiment_score == -0.2


@pytest.mark.parametrize("status", ["published", "rejected"])
def test_what_staff_decided_keeps_its_title(status: str) -> None:
    source = make_source()
    poll(source, make_entry("Gold up", guid="7"))
    NewsItem.objects.update(status=status)
    assert poll(source, make_entry("Gold falls after all", guid="7")) == IntakeTally(known=1)
    assert titles() == ["Gold up"]


def test_what_staff_edited_keeps_their_words() -> None:
    source = make_source()
    poll(source, make_entry("Gold up", guid="7"))
    NewsItem.objects.update(title="Gold rises, says the desk")
    poll(source, make_entry("Gold falls after all", guid="7"))
    assert titles() == ["Gold rises, says the desk"]


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
