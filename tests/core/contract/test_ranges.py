"""A page of a range is read along one index, from where it begins."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet

from core.contract.cursors import Cursors
from core.contract.ranges import PageEnd, Range, microseconds, read_range
from news.models import NewsItem
from signals_feed.models import Signal
from tests.factories import NOON

pytestmark = pytest.mark.django_db
CURSORS = Cursors("of a test")
PK = "6f1c2f5e-8f0b-4a53-9d0e-2b8f6f6f9a01"


def plan_of(rows: QuerySet[Any, Any]) -> str:
    if connection.vendor == "postgresql":
        # Of a table without rows it would read all.
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
    return rows[:501].explain()


@pytest.mark.parametrize(
    ("rows", "pk", "index"),
    [
        (NewsItem.objects.for_feed(), "7", "news_feed"),
        (NewsItem.objects.for_feed().filter(category="gold"), "7", "news_feed_category"),
        (Signal.objects.for_feed(), PK, "signal_feed_all"),
        (Signal.objects.for_feed().with_status("closed"), PK, "signal_feed"),
    ],
)
def test_page_begins_where_the_index_says(rows: QuerySet[Any, Any], pk: str, index: str) -> None:
    span = Range(CURSORS, (), 0, None, PageEnd(NOON, pk))
    plan = plan_of(span.of(rows).values_list("pk"))
    assert f" {index} " in plan
    # SQLite takes only the times of the pair where there is a start as well.
    assert re.search(r"published_at ?<|\(published_at,id\)<|ROW\(published_at, id\) < ROW", plan)
    assert "TEMP B-TREE" not in plan
    assert "Sort" not in plan


def test_next_leads_to_the_end_of_the_page() -> None:
    wanted = {"start": 5, "end": None, "cursor": None}
    span = read_range(wanted, CURSORS, "all")
    assert span is not None
    rows = [(NOON, 3), (NOON, 2), (NOON, 1)]
    shown, following = span.page(rows, 2, 0, 1)
    assert shown == rows[:2]
    again = read_range({**wanted, "cursor": following.decode().strip('"')}, CURSORS, "all")
    assert again is not None
    assert again.after == PageEnd(NOON, "2")


def test_naive_time_is_utc() -> None:
    assert microseconds(NOON.replace(tzinfo=None)) == microseconds(NOON)
