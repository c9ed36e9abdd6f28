"""The settings panel's page of what the account used: today by minute, 30 days by day."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from accounts.models import Account, AiUsage, UsageCounts
from core.times import midnight

from .requests import PersonRequest, settings_page

BARS_HEIGHT = 100


class Bars(NamedTuple):
    """A bar for each value, one unit wide, in a drawing of this width and of BARS_HEIGHT."""

    width: int
    path: str
    highest: int
    total: int


def bars(values: Sequence[int]) -> Bars:
    highest = max(values, default=0)
    path = "".join(
        f"M{place + 0.5} {BARS_HEIGHT}V{BARS_HEIGHT - value * BARS_HEIGHT / highest:.1f}"
        for place, value in enumerate(values)
        if value
    )
    return Bars(len(values), path, highest, sum(values))


DAYS = 30


class Chart(NamedTuple):
    title: str
    span: str
    """What one bar stands for."""
    bars: Bars


class UsageDay(NamedTuple):
    day: date
    counts: UsageCounts
    ai_calls: int


@settings_page
def usage(request: PersonRequest) -> HttpResponse:
    account = Account.objects.for_user(request.user)
    now = timezone.now()
    minutes, days = minutes_of(account, now), days_of(account, now)
    context = {
        "tier": account.tier,
        "today": days[-1],
        "charts": [
            Chart("Requests today", "minute", bars([each.requests for each in minutes])),
            Chart("Streams opened today", "minute", bars([each.streams for each in minutes])),
            Chart("Requests in 30 days", "day", bars([each.counts.requests for each in days])),
            Chart("Streams opened in 30 days", "day", bars([each.counts.streams for each in days])),
            Chart("AI calls in 30 days", "day", bars([each.ai_calls for each in days])),
        ],
        "days": [day for day in reversed(days) if day.ai_calls or day.counts != UsageCounts()],
    }
    return render(request, "settings/usage.html", context)


def minutes_of(account: Account, now: datetime) -> list[UsageCounts]:
    """Each minute of the UTC day, also those to come."""
    began = midnight(now)
    counts = counts_by(account, "minute", began)
    return [counts.get(began + timedelta(minutes=place), UsageCounts()) for place in range(24 * 60)]


def days_of(account: Account, now: datetime) -> list[UsageDay]:
    """Oldest first, today last."""
    wanted = [midnight(now) - timedelta(days=ago) for ago in reversed(range(DAYS))]
    counts = counts_by(account, "day", wanted[0])
    of_account = AiUsage.objects.filter(account=account, day__gte=wanted[0].date())
    calls = dict(of_account.values_list("day", "used"))
    return [UsageDay(at.date(), counts.get(at, UsageCounts()), calls.get(at.date(), 0)) for at in wanted]


def counts_by(account: Account, span: str, since: datetime) -> dict[datetime, UsageCounts]:
    rows = account.usage.filter(span=span, starts_at__gte=since)
    return {at: UsageCounts(*used) for at, *used in rows.values_list("starts_at", "requests", "streams")}
