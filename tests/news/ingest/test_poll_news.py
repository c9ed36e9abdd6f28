"""`manage.py poll_news`, and the serving process doing the same by itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from news.language_models import language_models
from news.models import NewsItem, Source
from news.scoring import sentiment_models
from tests.client import Server
from tests.news.language.language_server import KEY, LanguageServer, answer, says
from tests.patience import PATIENCE_S, wait_until

from .feed_server import FeedServer, item, reply, rss
from .made_feeds import make_source

pytestmark = pytest.mark.django_db(transaction=True)


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


def test_a_source_that_fails_ends_it_with_a_fault(feed_url: str) -> None:
    make_source(address=feed_url.replace("feed", "nothing"))
    with pytest.raises(CommandError, match="1 of 1 could not be polled."):
        run()


def test_an_unknown_name_is_told_the_known_ones() -> None:
    make_source()
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
