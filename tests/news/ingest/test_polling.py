"""A whole poll: server, child process, drafts, and what is noted with the source."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from core.threads import in_thread
from news.ingest.polling import CLAIM, Fetcher, Polled, claim, claim_due, poll
from news.language_models import language_models
from news.models import NewsItem, Source
from news.scoring import sentiment_models
from news.sentiment import Score
from tests.client import Server
from tests.news.language.language_server import KEY, LanguageServer, answer, says
from tests.patience import PATIENCE_S, wait_until

from .feed_server import FeedServer, item, redirect, reply, rss
from .made_feeds import half_up, make_source, titles

pytestmark = pytest.mark.django_db(transaction=True)
FEED = reply(rss(item("Gold steadies", "7")), ETag='"7"', Last_Modified="Wed, 18 Nov 2026 12:00:00 GMT")


async def polled(source: Source, fetcher: Fetcher | None = None) -> Polled:
    return await poll(source, half_up, fetcher or Fetcher(allow_loopback=True))


def poll_one(source: Source, *answers: bytes) -> list[Polled]:
    """One poll for each answer, of a server that was claimed."""

    async def run() -> list[Polled]:
        results = []
        async with FeedServer() as server:
            source.address = f"{server.url}/feed"
            await in_thread(source.save)
            for answer in answers:
                server.paths["/feed"] = answer
                fresh = await in_thread(Source.objects.get, pk=source.pk)
                results.append(await polled(fresh))
            source.asked = server.asked  # type: ignore[attr-defined]
        return results

    results = asyncio.run(run())
    source.refresh_from_db()
    return results


def test_a_poll_brings_drafts_and_is_noted() -> None:
    source = make_source()
    (found,) = poll_one(source, FEED)
    assert (titles(status="draft"), str(found)) == (["Gold steadies"], "1 new")
    assert (source.outcome, source.failures, source.last_error) == ("1 new", 0, "")
    assert (source.etag, source.modified) == ('"7"', "Wed, 18 Nov 2026 12:00:00 GMT")
    assert source.polled_at is not None
    assert source.next_poll_at - source.polled_at == timedelta(minutes=5)


def test_the_next_poll_asks_for_what_is_newer_also_after_one_that_failed() -> None:
    source = make_source()
    found = poll_one(source, FEED, reply(b"", "304 Not Modified"), reply(b"", "500 Oops"), FEED)
    asked: Any = source.asked  # type: ignore[attr-defined]
    assert ['if-none-match: "7"' in each.lower() for each in asked] == [False, True, True, True]
    assert [str(each) for each in found[:2]] == ["1 new", "nothing new"]
    assert source.etag == '"7"'


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (reply(b"", "404 Not Found"), "The answer was 404"),
        (redirect("http://192.168.1.1/admin"), "192.168.1.1 leads to an address that is not public"),
        (
            reply(gzip.compress(b"<!DOCTYPE x [<!ENTITY a 'b'>]><rss/>"), Content_Encoding="gzip"),
            "It declares entities of its own, which no feed needs",
        ),
    ],
)
def test_what_is_wrong_is_noted_in_words(answer: bytes, reason: str) -> None:
    source = make_source()
    (found,) = poll_one(source, answer)
    assert (source.last_error, source.failures, source.outcome) == (reason, 1, "")
    assert found.problem.lower() == reason.lower()


def test_failures_in_a_row_double_the_pause_and_one_success_ends_them() -> None:
    source = make_source()
    pauses = []
    fault, later = reply(b"", "500 Oops"), reply(b"", "503 Later", Retry_After="7200")
    for each in (fault, fault, later, FEED):
        poll_one(source, each)
        assert source.polled_at is not None
        pauses.append((source.next_poll_at - source.polled_at) / timedelta(minutes=1))
    assert pauses == [10, 20, 120, 5]
    assert (source.failures, source.last_error) == (0, "")


def test_what_staff_edit_meanwhile_stays() -> None:
    source = make_source()

    async def run(server: FeedServer) -> None:
        stale = await in_thread(Source.objects.get, pk=source.pk)
        stale.address = f"{server.url}/feed"
        await in_thread(Source.objects.filter(pk=source.pk).update, trust="publish", is_active=False)
        await polled(stale)

    with_server(run)
    source.refresh_from_db()
    assert (source.trust, source.is_active, source.failures) == ("publish", False, 0)


def with_server(act: Callable[[FeedServer], Awaitable[None]]) -> None:
    async def run() -> None:
        async with FeedServer() as server:
            server.paths["/feed"] = FEED
            await act(server)

    asyncio.run(run())


def test_each_source_that_is_due_is_polled_by_one_of_many_for_as_long_as_that_one_lives() -> None:
    sources, now = [make_source(f"Wire {number}") for number in range(12)], timezone.now()
    make_source("Paused", is_active=False)
    make_source("Later", next_poll_at=now + timedelta(days=1))

    async def claim_at_once() -> list[list[Source]]:
        return await asyncio.gather(*(in_thread(claim_due, now, 12) for _ in range(6)))

    claimed = [source for found in asyncio.run(claim_at_once()) for source in found]
    assert sorted(source.pk for source in claimed) == [source.pk for source in sources]
    assert not claim(sources[0], now)
    assert claim_due(now + CLAIM - timedelta(seconds=1), 20) == []
    assert {source.pk for source in claim_due(now + CLAIM, 20)} == {source.pk for source in sources}


def test_a_poll_that_takes_its_time_keeps_its_claim() -> None:
    source = make_source()
    (claimed,) = claim_due(timezone.now(), 10)
    ends = claimed.next_poll_at
    renewed = threading.Event()

    def slow(title: str, category: str) -> Score:
        assert renewed.wait(PATIENCE_S)
        return half_up(title, category)

    async def run(server: FeedServer) -> None:
        claimed.address = f"{server.url}/feed"
        polling = asyncio.create_task(poll(claimed, slow, Fetcher(allow_loopback=True), renew_s=0.05))
        # Twice: before a model is asked the claim is renewed too.
        for _ in range(2):
            known = await in_thread(next_poll_of, source)
            while await in_thread(next_poll_of, source) == known:
                assert not polling.done()
                await asyncio.sleep(0.01)
        assert await in_thread(claim_due, ends, 10) == []
        renewed.set()
        assert str(await polling) == "1 new"

    with_server(run)
    source.refresh_from_db()
    assert source.polled_at is not None
    assert source.next_poll_at - source.polled_at == timedelta(minutes=5)


def next_poll_of(source: Source) -> datetime:
    return Source.objects.get(pk=source.pk).next_poll_at


def test_a_poll_that_lost_its_claim_asks_no_model() -> None:
    source = make_source()
    (claimed,) = claim_due(timezone.now(), 10)
    asked: list[str] = []

    def scorer(title: str, category: str) -> None:
        asked.append(title)

    async def run(server: FeedServer) -> None:
        claimed.address = f"{server.url}/feed"
        assert await in_thread(claim_due, claimed.next_poll_at, 10) == [source]
        found = await poll(claimed, scorer, Fetcher(allow_loopback=True))
        assert found.problem.startswith("another poll has claimed it")

    with_server(run)
    taken = next_poll_of(source)
    source.refresh_from_db()
    assert (asked, source.failures, source.polled_at) == ([], 0, None)
    assert taken == claimed.next_poll_at + CLAIM


# `manage.py poll_news`, and the serving process doing the same by itself.
@contextmanager
def beside(server: FeedServer | LanguageServer) -> Iterator[None]:
    """The test, in a thread of its own."""
    loop = asyncio.new_event_loop()
    loop.run_until_complete(server.__aenter__())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield
    asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(PATIENCE_S)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def feed_url(settings: Any) -> Iterator[str]:
    settings.NEWS_FEEDS_ON_LOOPBACK = True
    server = FeedServer()
    server.paths["/feed"] = reply(rss(item("Gold steadies")))
    with beside(server):
        yield f"{server.url}/feed"


@pytest.fixture
def language(settings: Any) -> Iterator[LanguageServer]:
    """The model that is to score news."""
    server = LanguageServer()
    with beside(server):
        facts = {"protocol": "openai", "base_url": f"{server.url}/v1", "model": "words-1", "key": KEY}
        settings.LANGUAGE_ENDPOINTS = [facts | {"timeout_s": PATIENCE_S, "daily_budget": 100}]
        settings.SENTIMENT_MODEL = "words-1"
        for known in (language_models, sentiment_models):
            known.cache_clear()
        yield server
    for known in (language_models, sentiment_models):
        known.cache_clear()


def run(*names: str) -> str:
    said = StringIO()
    call_command("poll_news", *names, stdout=said, stderr=said)
    return said.getvalue()


def test_it_polls_what_is_due_or_named_and_says_what_came(feed_url: str) -> None:
    source = make_source(address=feed_url)
    assert run() == "Example Wire: 1 new\n"
    assert run() == "No source is due. Name one to poll it now.\n"
    Source.objects.update(is_active=False)
    for name in ("Example Wire", str(source.pk)):
        assert run(name) == "Example Wire: 1 known\n"


def test_a_source_that_fails_ends_it_with_a_fault_and_an_unknown_name_is_told_the_known_ones(
    feed_url: str,
) -> None:
    make_source(address=feed_url.replace("feed", "nothing"))
    with pytest.raises(CommandError, match="1 of 1 could not be polled."):
        run()
    with pytest.raises(CommandError, match="There is no source 'Wire'. There are: Example Wire."):
        run("Wire")


def test_a_model_that_is_plugged_in_scores_what_came(feed_url: str, language: LanguageServer) -> None:
    language.acts = [says("openai", '{"well": true}'), says("openai", '{"score": -0.75}')]
    make_source(address=feed_url)
    assert run() == "Example Wire: 1 new\n"
    assert NewsItem.objects.values_list("model", "sentiment_score").get() == ("words-1", -0.75)


def test_one_that_does_not_work_is_told(feed_url: str, language: LanguageServer) -> None:
    language.acts = [answer(500, {})]
    make_source(address=feed_url)
    assert "The built-in model scores in place of words-1: the endpoint answered 500" in run()
    assert NewsItem.objects.get().model == "tickwire-linear-1"


@pytest.fixture
def due(transactional_db: None, feed_url: str) -> None:
    """Before the server starts, which looks at once."""
    make_source(address=feed_url)


def test_the_serving_process_polls_by_itself(due: None, server: Server) -> None:
    wait_until(lambda: Source.objects.get().outcome)
    assert (Source.objects.get().outcome, NewsItem.objects.count()) == ("1 new", 1)
