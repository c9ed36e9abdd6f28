"""/settings/usage, and that the service counts what it is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
import time_machine
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.models import Account, AiUsage, Usage, UsageCounts
from accounts.usage import usage_buffer
from tests.accounts.browser import logged_in, token_of
from tests.client import Api, Server
from tests.contract.streams.client import Socket
from tests.factories import NOON, make_account, make_instrument, make_key

PAGE = "/settings/usage"


@pytest.fixture
def noon() -> Iterator[None]:
    """And no midnight between what is counted and the page."""
    with time_machine.travel(NOON, tick=False):
        yield


def used(account: Account, requests: int, streams: int = 0, *, days_ago: int = 0) -> None:
    at = int((timezone.now() - timedelta(days=days_ago)).timestamp()) // 60 * 60
    Usage.objects.add({(account.pk, at): UsageCounts(requests, streams)})


def labels(text: str) -> list[str]:
    return re.findall(r'role="img" aria-label="([^"]+)"', text)


@pytest.mark.usefixtures("noon")
def test_charts_tell_in_words_what_they_show(page: Client, account: Account) -> None:
    text = page.get(PAGE).text
    assert (labels(text), "Nothing used in the last 30 days" in text) == ([], True)
    used(account, 1200, 3)
    used(account, 34, days_ago=29)
    used(account, 5, days_ago=30)
    used(make_account(), 9_999)
    AiUsage.objects.create(account=account, day=timezone.now().date(), used=4)
    text = page.get(PAGE).text
    assert labels(text) == [
        "Requests today, by minute: 1,200 in all, 1,200 at most.",
        "Streams opened today, by minute: 3 in all, 3 at most.",
        "Requests in 30 days, by day: 1,234 in all, 1,200 at most.",
        "Streams opened in 30 days, by day: 3 in all, 3 at most.",
        "AI calls in 30 days, by day: 4 in all, 4 at most.",
    ]
    # Newest first.
    assert re.findall(r"<td>([\d,]+)</td>", text) == ["1,200", "3", "4", "34", "0", "0"]


def test_page_is_not_kept_and_costs_as_many_queries_for_a_full_month(
    page: Client, account: Account, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for days in range(30):
        used(account, 1, days_ago=days)
    # The session, its user, the account, minutes, days, AI calls.
    with django_assert_num_queries(6):
        assert "no-store" in page.get(PAGE)["Cache-Control"]


def test_service_counts_nothing_of_its_own_pages(server: Server) -> None:
    account = make_account()
    make_instrument("EURUSD")
    token = token_of(logged_in(account.user))
    with Api(server, token) as api, Socket(server, key=token) as socket:
        assert api.ask("/api/symbols").status_code == 200
        assert socket.subscribe("EURUSD")["type"] == "subscribed"
        server.run(usage_buffer.record())
    assert not account.usage.exists()


def test_service_counts_requests_and_streams_but_not_what_is_free_or_refused(server: Server) -> None:
    account = make_account()
    make_instrument("EURUSD")
    key = make_key(account)
    with Api(server, key) as api:
        for path in ("/api/symbols", "/api/nothing", "/api/news?limit=0", "/api/limits"):
            api.ask(path)
        api.ask("/api/symbols", key=key[:-1])
    with Socket(server, key=key) as socket:
        for _ in range(2):
            socket.subscribe("EURUSD")
        server.run(usage_buffer.record())
    # Of two, if a day has ended meanwhile.
    days = account.usage.filter(span="day")
    assert [sum(days.values_list(name, flat=True)) for name in ("requests", "streams")] == [3, 1]
