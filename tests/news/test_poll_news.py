"""`manage.py poll_news`, and the serving process doing the same by itself."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from news.ingest import poller
from news.models import NewsItem, Source
from tests.client import Server
from tests.news.feed_server import FeedServer, item, reply, rss
from tests.news.newsroom import make_source

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def feed_url(settings: Any) -> Iterator[str]:
    """A feed beside the test, in a thread of its own."""
    settings.NEWS_FEEDS_ON_LOOPBACK = True
    loop = asyncio.new_event_loop()
    server = FeedServer()
    server.paths["/feed"] = reply(rss(item("Gold steadies")))
    loop.run_until_complete(server.__aenter__())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield f"{server.url}/feed"
    asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def run(*names: str) -> str:
    said = StringIO()
    call_command("poll_news", *names, stdout=said, stderr=said)
    return said.getvalue()


def test_it_polls_what_is_due_and_says_what_came(feed_url: str) -> None:
    make_source(address=feed_url)
    assert run() == "Example Wire: 1 new\n"
    assert run() == "No source is due. Name one to poll it now.\n"


def test_a_named_source_is_polled_due_or_not(feed_url: str) -> None:
    source = make_source(address=feed_url, is_active=False)
    run("Example Wire")
    assert run(str(source.pk)) == "Example Wire: 1 known\n"


def test_a_source_that_fails_ends_it_with_a_fault(feed_url: str) -> None:
    make_source(address=feed_url.replace("feed", "nothing"))
    with pytest.raises(CommandError, match="1 of 1 could not be polled."):
        run()


def test_an_unknown_name_is_told_the_known_ones() -> None:
    make_source()
    with pytest.raises(CommandError, match="There is no source 'Wire'. There are: Example Wire."):
        run("Wire")


@pytest.fixture
def due(transactional_db: None, feed_url: str) -> None:
    """Before the server starts, which looks at once."""
    make_source(address=feed_url)


def test_the_serving_process_polls_by_itself(due: None, server: Server) -> None:
    deadline = time.monotonic() + 3 * poller.LOOK_S
    while not (source := Source.objects.get()).outcome:
        assert time.monotonic() < deadline, source.last_error
        time.sleep(0.05)
    assert (source.outcome, NewsItem.objects.count()) == ("1 new", 1)
