"""The settings panel's key page. A secret appears only in the answer to the POST that created it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django import forms
from django.contrib import messages
from django.db import transaction
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone

from accounts.form_fields import OneLineField
from accounts.keys.issuing import KeyNotActive, TooManyKeys, issue_key, revoke_key, roll_key
from accounts.models import Account, ApiKey, User
from accounts.signals import sample_wanted

from .requests import PersonRequest, settings_action, settings_form, settings_page

# Ended keys stay in the database for ever; one page of them is enough to look back.
ENDED_SHOWN = 50
OVERLAPS = ((0, "It stops now"), (1, "1 hour"), (24, "24 hours"), (72, "72 hours"))


class IssueKeyForm(forms.Form):
    name = OneLineField(help_text="What it is for, such as “backtests on the laptop”.")


class RollKeyForm(forms.Form):
    overlap_hours = forms.TypedChoiceField(
        choices=OVERLAPS, coerce=int, initial=24, label="How long the old key keeps working"
    )


class FormUsedBefore(Exception):
    """The form is older than the account's newest key."""


class KeyRow(NamedTuple):
    key: ApiKey
    state: str
    roll_form: RollKeyForm | None


@settings_form
def keys(request: PersonRequest) -> HttpResponse:
    account = Account.objects.for_user(request.user)
    if request.method != "POST":
        return key_page(request, account)
    form = IssueKeyForm(request.POST)
    if not form.is_valid():
        return key_page(request, account, form, status=400)
    try:
        newest = request.POST.get("newest", "")
        key, secret = issue_once(account, form.cleaned_data["name"], newest=newest, by=request.user)
    except (FormUsedBefore, TooManyKeys) as refusal:
        form.add_error(None, str(refusal))
        return key_page(request, account, form, status=409)
    return show_secret(request, key, secret)


@transaction.atomic
def issue_once(account: Account, name: str, *, newest: str, by: User) -> tuple[ApiKey, str]:
    """Issue a key unless one came since the form was made, so that a reload makes no second one."""
    # The lock lets two presses of one button come one after the other.
    Account.objects.select_for_update().get(pk=account.pk)
    if newest != newest_key(account):
        raise FormUsedBefore(
            "No key was issued, because another one was issued after this page was loaded. If that is the key"
            " you wanted but you do not have its secret, revoke it. To issue another, send the form again."
        )
    return issue_key(account, name, by=by.get_username())


def newest_key(account: Account) -> str:
    return str(account.keys.order_by("-pk").values_list("pk", flat=True).first() or "none")


@settings_action
def roll(request: PersonRequest, pk: int) -> HttpResponse:
    account = Account.objects.for_user(request.user)
    key = get_object_or_404(account.keys, pk=pk)
    form = RollKeyForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Choose one of the offered times for the old key.")
        return key_page(request, account, status=400)
    try:
        successor, secret = roll_key(key, **form.cleaned_data, by=request.user.get_username())
    except (KeyNotActive, TooManyKeys) as refusal:
        ended = f"“{key.name}” ({key.prefix}…) has ended or has already been rolled; nothing was done."
        messages.error(request, ended if isinstance(refusal, KeyNotActive) else str(refusal))
        return key_page(request, account, status=409)
    key.refresh_from_db()
    return show_secret(request, successor, secret, rolled=key)


@settings_action
def revoke(request: PersonRequest, pk: int) -> HttpResponse:
    key = get_object_or_404(Account.objects.for_user(request.user).keys, pk=pk)
    named = f"“{key.name}” ({key.prefix}…)"
    if revoke_key(key, by=request.user.get_username()):
        messages.success(request, f"{named} is revoked. It stops working within 2 seconds.")
    else:
        messages.info(request, f"{named} has already been revoked.")
    return redirect("keys")


def key_page(
    request: PersonRequest, account: Account, form: IssueKeyForm | None = None, *, status: int = 200
) -> HttpResponse:
    now = timezone.now()
    ended = account.keys.ended(now)
    context = {
        "tier": account.tier,
        "first_run": first_run_of(account),
        "commands": commands(request),
        "usable": [row_of(key, now) for key in account.keys.usable(now)],
        "ended": [row_of(key, now) for key in ended[:ENDED_SHOWN]],
        "ended_hidden": max(0, ended.count() - ENDED_SHOWN),
        "newest": newest_key(account),
        "form": form or IssueKeyForm(),
    }
    return render(request, "settings/keys/keys.html", context, status=status)


def row_of(key: ApiKey, now: datetime) -> KeyRow:
    state = key.state(now)
    return KeyRow(key, state, RollKeyForm(auto_id=f"key-{key.pk}-%s") if state == "active" else None)


def show_secret(
    request: PersonRequest, key: ApiKey, secret: str, *, rolled: ApiKey | None = None
) -> HttpResponse:
    quote = request.build_absolute_uri(f"/api/market/{sample_symbol()}/quote")
    context = {
        "key": key,
        "secret": secret,
        "export": f"export TICKWIRE_KEY={secret}",
        "curl": f'curl -H "X-API-Key: $TICKWIRE_KEY" {quote}',
        "rolled": rolled,
        "rolled_state": rolled.state(timezone.now()) if rolled else "",
    }
    return render(request, "settings/keys/key_shown.html", context)


# The first steps of an account, ticked as they happen: a key, a request with it, a stream with it.
def sample_symbol() -> str:
    """The instrument of the commands."""
    return next((str(symbol) for _, symbol in sample_wanted.send(None)), "EURUSD")


@dataclass(frozen=True)
class FirstRun:
    has_key: bool
    has_called: bool
    has_streamed: bool

    @property
    def done(self) -> int:
        return self.has_key + self.has_called + self.has_streamed

    @property
    def is_over(self) -> bool:
        return self.has_key and self.has_called and self.has_streamed


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
