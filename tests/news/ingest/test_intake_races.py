"""Several processes take feeds at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from news.ingest import intake
from news.models import NewsItem, Source
from tests.patience import PATIENCE_S

from .newsroom import POLLED_AT, feed_of, half_up, make_source

AT_ONCE = 4


@pytest.mark.django_db(transaction=True)
def test_one_story_of_many_feeds_at_once_is_taken_once() -> None:
    sources = [make_source(f"Wire {number}") for number in range(AT_ONCE)]
    titles = ("Gold steadies near the tin record", "Euro firms on oak exports")
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for title in titles:
            barrier = Barrier(AT_ONCE)
            tallies = [*threads.map(lambda source: take_at(barrier, source, title), sources)]  # noqa: B023
            assert sum(tally.new for tally in tallies) == 1
    assert NewsItem.objects.count() == len(titles)


def take_at(barrier: Barrier, source: Source, title: str) -> intake.IntakeTally:
    """Every one has read, and found it new, before the first of them stores."""
    try:
        reading = intake.read(source, feed_of(title), POLLED_AT)
        judged = intake.judge(source, reading, half_up)
        barrier.wait(PATIENCE_S)
        return intake.store(source, reading, judged)
    finally:
        connection.close()
