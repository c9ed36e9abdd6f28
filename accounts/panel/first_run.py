"""The first steps of an account: a key, a request with it, a stream with it. What happened ticks them."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from accounts.models import Account
from accounts.signals import sample_wanted

from .requests import PersonRequest, settings_page


def sample_symbol() -> str:
    """The instrument of the commands."""
    return next((str(symbol) for _, symbol in sample_wanted.send(None)), "EURUSD")


class FirstRun(NamedTuple):
    has_key: bool
    has_called: bool
    has_streamed: bool

    @property
    def done(self) -> int:
        return sum(self)

    @property
    def is_over(self) -> bool:
        return all(self)


def first_run_of(account: Account) -> FirstRun:
    """Counts ended keys too: a returning customer needs no introduction."""
    counts = account.keys.aggregate(keys=Count("pk"), called=Count("last_used_at"))
    has_streamed = account.usage.filter(streams__gt=0).exists()
    return FirstRun(counts["keys"] > 0, counts["called"] > 0, has_streamed)


def commands(request: HttpRequest) -> dict[str, str]:
    """Each carries the key as `$TICKWIRE_KEY`, so that it can be copied as it is."""
    symbol, host = sample_symbol(), request.get_host()
    socket = f"{'wss' if request.is_secure() else 'ws'}://{host}/ws/market"
    header = '-H "X-API-Key: $TICKWIRE_KEY"'
    subscribe = f'{{"action": "subscribe", "symbols": ["{symbol}"]}}'
    return {
        "call": f"curl {header} \\\n  {request.scheme}://{host}/api/market/{symbol}/quote",
        "stream": f"npx wscat -c {socket} \\\n  {header} -w 60 \\\n  -x '{subscribe}'",
    }


@settings_page
def first_run(request: PersonRequest) -> HttpResponse:
    """The card, for the page that watches it, and when each key was last used, as the list of keys says.
    A browser that opens its address is sent to that page."""
    if request.headers.get("Sec-Fetch-Mode") == "navigate":
        return redirect("keys")
    account = Account.objects.for_user(request.user)
    context: dict[str, Any] = {"first_run": first_run_of(account), "commands": commands(request)}
    context["used"] = account.keys.usable(timezone.now()).exclude(last_used_at=None)
    return render(request, "settings/keys/_first_run_again.html", context)
