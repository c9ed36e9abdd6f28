"""Long lists: few queries, and for candles no count and no scan."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts.models import Account, ApiKey, User
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from instruments.models import Instrument
from market.models import Candle
from news.models import NewsItem
from signals_feed.models import Signal
from tests.factories import NOON, make_account, make_candle, make_instrument, make_key, make_news, make_signal

from .office import Office, list_of, text_of

pytestmark = pytest.mark.django_db
# One more than a page of a list shows.
ROWS, MAX_QUERIES = 101, 14


def candles(number: int) -> None:
    instrument = Instrument.objects.first() or make_instrument()
    make_candle(instrument, opened_at=NOON - timedelta(minutes=number))


def customers(number: int) -> None:
    make_key(make_account())


def events(number: int) -> None:
    with transaction.atomic():
        ControlEvent.objects.publish(EventKind.KEY_ISSUED, by="boss", key=number)


@pytest.mark.served
@pytest.mark.parametrize(
    ("make", "models"),
    [
        (candles, [Candle]),
        (lambda number: make_signal(), [Signal]),
        (lambda number: make_news(), [NewsItem]),
        (customers, [ApiKey, Account, User]),
        (events, [ControlEvent]),
    ],
    ids=["candles", "signals", "news", "customers", "events"],
)
def test_a_long_list_takes_few_queries(
    office: Office, make: Callable[[int], object], models: list[Any]
) -> None:
    for number in range(ROWS):
        make(number)
    for model in models:
        with CaptureQueriesContext(connection) as asked:
            answer = office.get(list_of(model))
        assert answer.status_code == 200
        assert len(answer.context["cl"].result_list) == 100
        assert len(asked) <= MAX_QUERIES, "\n".join(query["sql"] for query in asked)


def queries_of(office: Office, address: str) -> list[str]:
    with CaptureQueriesContext(connection) as asked:
        assert office.get(address).status_code == 200
    return [query["sql"] for query in asked if "market_candle" in query["sql"]]


OF_ONE = ('"instrument_id" = ', '"timeframe" = ', 'ORDER BY "market_candle"."opened_at" DESC')
PARTS = ("", "?_facets=True", "?p=2", "?all=", "?timeframe=1h", "?instrument=0", "?instrument=x&timeframe=2h")


def test_candles_are_always_asked_of_one_instrument_and_timeframe_and_never_counted(office: Office) -> None:
    usdjpy = make_instrument(digits=3)
    for timeframe in ("1m", "1h"):
        make_candle(usdjpy, timeframe, close=Decimal("1.08"))
    for part in PARTS:
        queries = queries_of(office, list_of(Candle) + part)
        assert queries
        assert all(each in query and "COUNT(" not in query for query in queries for each in OF_ONE), part
    # With the decimals of their instrument.
    page = office.get(f"{list_of(Candle)}?instrument={usdjpy.pk}&timeframe=1h")
    assert [candle.timeframe for candle in page.context["cl"].result_list] == ["1h"]
    assert ">1.080<" in text_of(page)
    assert "1.08000000" not in text_of(page)
