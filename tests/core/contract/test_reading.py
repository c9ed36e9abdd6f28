"""What a query says: times, cursors, and the page of a range that they lead to."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from core.contract.errors import InvalidCursor, InvalidParameter, Overloaded, ParameterOutOfRange
from core.contract.parameters import QuerySerializer, TimeParameter, read_parameters
from core.contract.ranges import LONGEST, Cursors, PageEnd, Range, microseconds, read_range
from news.models import NewsItem
from signals_feed.models import Signal
from tests.factories import NOON


class Query(QuerySerializer):
    start = TimeParameter()


AT_TWO_MS = 1_795_183_200_000


@pytest.mark.parametrize(
    ("query", "time_ms"),
    [
        ("", None),
        ("start=2026-11-20T14:00:00Z", AT_TWO_MS),
        ("start=2026-11-20T14:00Z", AT_TWO_MS),
        ("start=2026-11-20T15:00:00%2B01:00", AT_TWO_MS),
        ("start=2026-11-20T14:00:00.2501Z", AT_TWO_MS + 251),
        (f"start={AT_TWO_MS}", AT_TWO_MS),
        # Small numbers that cannot be meant as a day are milliseconds.
        *((f"start={ms}", ms) for ms in (0, 20261320, 19691231, 60000, 3600000)),
        ("start=02026112", 2026112),
    ],
)
def test_moment_is_read(query: str, time_ms: int | None) -> None:
    assert read_parameters(Query, query)["start"] == time_ms


NO_MOMENT = "start must be a UTC day"
NO_MOMENTS = (
    "2026-11-20T14:00:00",
    "2026-11-31",
    "",
    "now",
    "1.5",
    "-1",
    "1_0",
    "٣",
    "2026-11-20T15:00:00+01:00",
)


@pytest.mark.parametrize(
    ("text", "refusal", "sentence"),
    [
        *((text, InvalidParameter, NO_MOMENT) for text in NO_MOMENTS),
        (
            "20261120",
            InvalidParameter,
            "start is in milliseconds, and 20261120 would be 1970-01-01T05:37:41.120Z. "
            "If this is a date, send 2026-11-20.",
        ),
        *(
            (text, ParameterOutOfRange, "")
            for text in ("1969-12-31T23:59:59Z", "253402300800000", "9" * 5000)
        ),
    ],
)
def test_what_is_no_moment_is_refused_by_its_name(text: str, refusal: type[Exception], sentence: str) -> None:
    with pytest.raises(refusal) as refused:
        read_parameters(Query, f"start={text}")
    assert sentence in str(refused.value)


CURSORS = Cursors("history")
ASKED = ["EURUSD", "1m", None, 1_795_000_000_000]
POSITION = [1_794_000_000_000, 7]


def test_position_comes_back_in_a_cursor_that_fits_into_an_address() -> None:
    cursor = CURSORS.seal(ASKED, POSITION)
    assert CURSORS.open(cursor, ASKED) == POSITION
    assert re.fullmatch(r"[\w.-]+", cursor, re.ASCII)


@pytest.mark.parametrize(
    ("cursors", "asked"),
    [
        (Cursors("news"), ASKED),
        *((CURSORS, asked) for asked in (["EURUSD", "5m", None, 1_795_000_000_000], ["EURUSD"], [])),
    ],
)
def test_cursor_of_another_path_or_other_parameters_is_refused(cursors: Cursors, asked: list[object]) -> None:
    with pytest.raises(InvalidCursor) as refused:
        cursors.open(CURSORS.seal(ASKED, POSITION), asked)
    assert (refused.value.code, refused.value.status_code) == ("invalid_cursor", 400)
    assert refused.value.field == "cursor"
    # All that may differ on some path.
    assert all(name in refused.value.message for name in ("limit", "expand", "Accept"))


@given(place=st.integers(0, 200), letter=st.characters(codec="utf-8"))
def test_altered_cursor_is_refused(place: int, letter: str) -> None:
    cursor = CURSORS.seal(ASKED, POSITION)
    place %= len(cursor)
    altered = cursor[:place] + letter + cursor[place + 1 :]
    if altered != cursor:
        with pytest.raises(InvalidCursor):
            CURSORS.open(altered, ASKED)


@given(text=st.text() | st.just("x" * (LONGEST + 1)) | st.just("." * 10))
def test_any_other_text_is_no_cursor(text: str) -> None:
    with pytest.raises(InvalidCursor):
        CURSORS.open(text, ASKED)


def test_cursor_that_is_longer_than_any_is_not_read_whoever_signed_it() -> None:
    with pytest.raises(InvalidCursor):
        CURSORS.open(CURSORS.seal(ASKED, "x" * LONGEST), ASKED)


def test_wait_is_never_told_as_none() -> None:
    assert [Overloaded(retry_after=wait_s).headers["Retry-After"] for wait_s in (-1, 0, 1, 2)] == [*"1112"]


def test_cursor_outlasts_a_rotated_secret() -> None:
    with override_settings(SECRET_KEY="the one before"):
        cursor = CURSORS.seal(ASKED, POSITION)
    with override_settings(SECRET_KEY="the one after", SECRET_KEY_FALLBACKS=["the one before"]):
        assert CURSORS.open(cursor, ASKED) == POSITION
    with override_settings(SECRET_KEY="the one after"), pytest.raises(InvalidCursor):
        CURSORS.open(cursor, ASKED)


PK = "6f1c2f5e-8f0b-4a53-9d0e-2b8f6f6f9a01"


@pytest.mark.django_db
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
    if connection.vendor == "postgresql":
        # Of a table without rows it would read all.
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
    span = Range(CURSORS, (), 0, None, PageEnd(NOON, pk))
    plan = span.of(rows).values_list("pk")[:501].explain()
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
    assert microseconds(NOON.replace(tzinfo=None)) == microseconds(NOON)
