"""Accounts that their tier is getting too small for: staff may want to speak with them."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from asgiref.sync import async_to_sync
from django.db.models import F
from django.db.models.functions import Greatest

from accounts.keys.caller import of_keys
from accounts.models import AiUsage, Usage
from accounts.open_streams.registry import open_streams

RECENTLY = timedelta(hours=1)
NEARLY = 0.8

# Open streams are counted only for accounts that opened one within this time.
OPENED_WITHIN = timedelta(days=7)
MOST_ASKED = 500


def near_limits(now: datetime) -> set[int]:
    return short_of_requests(now) | out_of_ai_calls(now) | out_of_streams(now)


def short_of_requests(now: datetime) -> set[int]:
    """Accounts that used most of the minute's allowance, in any minute of the last hour."""
    allowed = F("account__tier__requests_per_minute") * NEARLY
    minutes = Usage.objects.filter(span="minute", starts_at__gte=now - RECENTLY)
    return set(minutes.filter(requests__gt=allowed).values_list("account_id", flat=True))


def out_of_ai_calls(now: datetime) -> set[int]:
    """A tier without any is no reason: nobody used them up."""
    allowed = Greatest(F("account__tier__ai_calls_per_day"), 1)
    today = AiUsage.objects.filter(day=now.astimezone(UTC).date())
    return set(today.filter(used__gte=allowed).values_list("account_id", flat=True))


def out_of_streams(now: datetime) -> set[int]:
    days = Usage.objects.filter(span="day", starts_at__gte=now - OPENED_WITHIN, streams__gt=0)
    limits = dict(days.values_list("account_id", "account__tier__streams").distinct()[:MOST_ASKED])
    opened = async_to_sync(count_open)(limits)
    return {account for account, count in opened.items() if count >= limits[account]}


async def count_open(accounts: Iterable[int]) -> dict[int, int]:
    """With keys: what pages have open counts to no tier."""
    wanted = list(accounts)
    found = await asyncio.gather(*(open_streams.of(of_keys(account)) for account in wanted))
    return {account: len(streams) for account, streams in zip(wanted, found, strict=True) if streams}
