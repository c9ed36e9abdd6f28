"""The first page of the back office: what needs somebody, counted cheaply and only for those who may know."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Account, AiUsage, TierRequest, Usage
from accounts.open_streams.registry import open_streams
from accounts.usage import count_open, near_limits
from config.back_office_pages import NEEDS
from instruments.catalogue import catalogue
from news.models import Source
from signals_feed.publishers.requests import PublisherRequest
from status.models import Incident
from tests.accounts.back_office.office import Office, text_of
from tests.factories import NOON, make_account, make_instrument, make_news, make_tier, make_user, put_quote

pytestmark = pytest.mark.django_db
PAGE = "/admin/"
HOUR_MS = 3_600_000

# The session, the user, the factor and what each number asks; more would be a list that grew into it.
MOST_QUERIES = 16


def numbers(office: Office) -> dict[str, int]:
    return {need["title"]: need["number"] for need in office.get(PAGE).context["needs"]}


def spend(account: Account, span: str = "minute", minutes_ago: int = 5, **used: int) -> None:
    at = timezone.now() - timedelta(minutes=minutes_ago)
    Usage.objects.create(account=account, span=span, starts_at=at, **used)


def shown(page: Any) -> list[str]:
    return [str(row) for row in page.context["cl"].result_list]


def test_each_need_is_counted_and_its_number_leads_there(office: Office) -> None:
    catalogue.load_now()
    assert set(numbers(office).values()) == {0}
    make_news(status="draft")
    make_news()
    make_instrument("EURUSD")
    put_quote("EURUSD", at_ms=int(timezone.now().timestamp() * 1000) - HOUR_MS)
    for name, fields in (
        ("a", {"failures": 3}),
        ("b", {"failures": 2}),
        ("c", {"failures": 9, "is_active": False}),
    ):
        Source.objects.create(name=name, address=f"https://example.com/{name}", **fields)
    account = make_account(make_user("busy"))
    spend(make_account(), requests=1)
    TierRequest.objects.create(account=account, wanted=make_tier("pro"), why="A bot.")
    PublisherRequest.objects.create(account=account, why="Gold, by hand.")
    spend(account, requests=60)
    Incident.objects.create(title="No gold")
    Incident.objects.create(title="Over", ended_at=timezone.now() + timedelta(seconds=1))
    assert set(numbers(office).values()) == {1}
    assert len(numbers(office)) == len(NEEDS)
    pages = {need["title"]: office.get(need["link"]) for need in office.get(PAGE).context["needs"]}
    assert {page.status_code for page in pages.values()} == {200}
    assert shown(pages["Broken news sources"]) == ["a"]
    assert shown(pages["Accounts near their limits"]) == ["busy"]


@pytest.mark.parametrize(
    ("codename", "title"),
    [
        ("change_newsitem", "Drafts waiting"),
        ("view_source", "Broken news sources"),
        ("view_tierrequest", "Tier requests waiting"),
        ("view_publisherrequest", "Publisher requests waiting"),
        ("view_account", "Accounts near their limits"),
        ("view_incident", "Open incidents"),
    ],
)
def test_a_number_is_for_those_who_may_see_its_page(codename: str, title: str) -> None:
    user = make_user(is_staff=True)
    assert numbers(Office(user)) == {}
    user.user_permissions.set(Permission.objects.filter(codename=codename))
    assert list(numbers(Office(user))) == [title]


def test_the_page_asks_few_questions_however_much_there_is(office: Office) -> None:
    office.get(PAGE)
    with CaptureQueriesContext(connection) as few:
        office.get(PAGE)
    for number in range(20):
        make_news(f"Item {number}", status="draft")
        account = make_account()
        spend(account, requests=60)
        spend(account, span="day", streams=3)
        Incident.objects.create(title=f"Incident {number}")
    with CaptureQueriesContext(connection) as many:
        assert "Drafts waiting" in text_of(office.get(PAGE))
    assert len(many) == len(few) <= MOST_QUERIES, "\n".join(query["sql"] for query in many)


@pytest.mark.parametrize(
    ("used", "minutes_ago", "is_near"), [(48, 5, False), (49, 5, True), (60, 59, True), (60, 61, False)]
)
@time_machine.travel(NOON, tick=False)
def test_most_of_the_minutes_allowance_within_an_hour_is_near(
    used: int, minutes_ago: int, is_near: bool
) -> None:
    account = make_account()
    spend(account, requests=used, minutes_ago=minutes_ago)
    assert near_limits(timezone.now()) == ({account.pk} if is_near else set())


@pytest.mark.parametrize(("used", "allowed", "is_near"), [(4, 5, False), (5, 5, True), (0, 0, False)])
def test_used_up_ai_calls_are_near(used: int, allowed: int, is_near: bool) -> None:
    account = make_account(tier=make_tier("some", ai_calls_per_day=allowed))
    AiUsage.objects.create(account=account, day=NOON.date(), used=used)
    assert near_limits(NOON) == ({account.pk} if is_near else set())


async def test_open_streams_are_counted_by_account() -> None:
    slot: Any = await open_streams.claim("7", "/ws/market", 1, on_end=lambda code: None)
    try:
        assert await count_open([7, 8]) == {7: 1}
    finally:
        slot.release()
    assert await count_open([7, 8]) == {}
