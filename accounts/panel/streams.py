"""The open streams and sessions of an account, each with a button that ends it. The sessions are allauth's
list in our look."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from allauth.usersessions.models import UserSession
from asgiref.sync import async_to_sync
from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from accounts.keys.caller import PAGE_STREAMS, is_of_keys
from accounts.models import Account, ApiKey
from accounts.open_streams.details import StreamDetails
from accounts.open_streams.registry import TooManyClosed, close_stream, open_streams
from accounts.open_streams.stream_slots import OpenStream
from core.times import moment

from .requests import PersonRequest, settings_action, settings_page


class StreamForm(forms.Form):
    """Which stream is meant: an account opens no two on one path in the same microsecond."""

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
    # Events are written of streams that are there, not of whatever somebody sends.
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
