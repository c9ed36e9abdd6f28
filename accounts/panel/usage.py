"""The settings panel's pages of limits: what the account used by minute and by day, its open streams, and the
tiers it may ask for."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from allauth.usersessions.models import UserSession
from asgiref.sync import async_to_sync
from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone

from accounts.form_fields import OneLineField
from accounts.keys.caller import PAGE_STREAMS, is_of_keys
from accounts.limits.tiers import TierRequestRefused, ask_for_tier, withdraw_request
from accounts.login.mails import address_for_answers
from accounts.models import LONGEST_REASON, TIER_LIMITS, Account, AiUsage, ApiKey, Tier, UsageCounts
from accounts.open_streams.registry import TooManyClosed, close_stream, open_streams
from accounts.open_streams.stream_slots import OpenStream, StreamDetails
from core.times import midnight, moment

from .requests import PersonRequest, settings_action, settings_form, settings_page

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


# The open streams and sessions of an account, each with a button that ends it. The sessions are allauth's
# list in our look.
class StreamForm(forms.Form):
    """Identifies a stream: an account opens no two on one path in the same microsecond."""

    path = forms.CharField(max_length=40)
    opened_at = forms.FloatField()


class StreamRow(NamedTuple):
    path: str
    opened_at: str
    since: datetime
    is_of_page: bool
    key: ApiKey | None = None
    """None of a page's stream, and of one that is not known yet."""
    details: StreamDetails | None = None


def rows_of(account: Account) -> list[StreamRow]:
    streams = async_to_sync(open_streams.of_account)(account.pk)
    keys = account.keys.in_bulk({stream.details.key_id for stream in streams if stream.details})
    return [row_of(stream, keys) for stream in streams]


def row_of(stream: OpenStream, keys: Mapping[int, ApiKey]) -> StreamRow:
    return StreamRow(
        stream.path,
        f"{stream.opened_at:.6f}",
        moment(round(1000 * stream.opened_at)),
        not is_of_keys(stream.counted_under),
        keys.get(stream.details.key_id) if stream.details else None,
        stream.details,
    )


@settings_page
def streams(request: PersonRequest) -> HttpResponse:
    account = Account.objects.for_user(request.user)
    rows = rows_of(account)
    of_pages = sum(row.is_of_page for row in rows)
    context = {
        "streams": rows,
        "tier": account.tier,
        "of_keys": len(rows) - of_pages,
        "of_pages": of_pages,
        "most_of_pages": PAGE_STREAMS,
        "everything": ["*"],
    }
    return render(request, "settings/streams.html", context)


@settings_action
def close(request: PersonRequest) -> HttpResponse:
    form = StreamForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Choose one of the streams below.")
        return redirect("open_streams")
    account = Account.objects.for_user(request.user)
    path, opened_at = form.cleaned_data["path"], form.cleaned_data["opened_at"]
    # An event is written only for a stream that is open, not for any text that a client sends.
    if (path, f"{opened_at:.6f}") not in {row[:2] for row in rows_of(account)}:
        messages.info(request, "This stream is no longer open; nothing was done.")
        return redirect("open_streams")
    try:
        close_stream(account, path, opened_at, by=request.user.get_username())
        messages.success(request, f"The stream on {path} closes within 2 seconds.")
    except TooManyClosed as refusal:
        messages.error(request, str(refusal))
    return redirect("open_streams")


@settings_action
def end_session(request: PersonRequest, pk: int) -> HttpResponse:
    """With what its pages have open."""
    session = get_object_or_404(UserSession, user=request.user, pk=pk)
    if session.session_key == request.session.session_key:
        return redirect("account_logout")
    session.end()
    messages.success(request, f"The session from {session.ip} has ended. Its pages stop within 2 seconds.")
    return redirect("usersessions_list")


# The settings panel's page of tiers: what each allows, and asking staff for another.
SHOWN = 10


class TierRequestForm(forms.Form):
    wanted = forms.ModelChoiceField(
        Tier.objects.none(), label="Tier", empty_label=None, error_messages={"required": "Choose a tier."}
    )
    why = OneLineField(
        LONGEST_REASON,
        label="Why",
        help_text="One sentence: what you are building, and what your tier lacks for it.",
        error_messages={"required": "Give the reason in one sentence."},
    )

    def __init__(self, current: Tier, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        wanted = self.fields["wanted"]
        assert isinstance(wanted, forms.ModelChoiceField)  # noqa: S101 - declared above
        wanted.queryset = Tier.objects.exclude(pk=current.pk)


@settings_form
def tier(request: PersonRequest) -> HttpResponse:
    account = Account.objects.for_user(request.user)
    if request.method != "POST":
        # A link on the page of prices says which.
        wanted = Tier.objects.filter(name=request.GET.get("wanted", "")).first()
        return show(request, account, TierRequestForm(account.tier, initial={"wanted": wanted}))
    form = TierRequestForm(account.tier, request.POST)
    if not form.is_valid():
        return show(request, account, form, status=400)
    try:
        ask_for_tier(account, **form.cleaned_data, by=request.user.get_username())
    except TierRequestRefused as refusal:
        form.add_error(None, str(refusal))
        return show(request, account, form, status=409)
    messages.success(request, "Your request has been sent to the staff. This page shows their answer.")
    return redirect("tier")


def show(
    request: PersonRequest, account: Account, form: TierRequestForm, *, status: int = 200
) -> HttpResponse:
    asked = list(account.tier_requests.select_related("wanted")[:SHOWN])
    waiting = next((each for each in asked if each.state == each.State.OPEN), None)
    context = {
        "tier": account.tier,
        "tiers": Tier.objects.all(),
        "limits": TIER_LIMITS.values(),
        "waiting": waiting,
        "decided": [each for each in asked if each is not waiting],
        "form": form,
        "answers_to": address_for_answers(request.user),
    }
    return render(request, "settings/tier.html", context, status=status)


@settings_action
def withdraw(request: PersonRequest, pk: int) -> HttpResponse:
    account = Account.objects.for_user(request.user)
    try:
        withdraw_request(get_object_or_404(account.tier_requests, pk=pk), by=request.user.get_username())
        messages.success(request, "Your request has been withdrawn.")
    except TierRequestRefused:
        messages.info(request, "It has already been decided; see below.")
    return redirect("tier")
