"""The settings panel's pages of the account itself: its events, export and deletion."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from allauth.account.adapter import get_adapter
from allauth.account.decorators import reauthentication_required
from allauth.account.models import EmailAddress
from allauth.decorators import rate_limit
from django import forms
from django.contrib.auth import logout
from django.http import HttpResponse
from django.shortcuts import render

from accounts.deletion import DeletionRefused, delete_account, staying_of
from accounts.models import PUBLISHER, Account, User
from accounts.own_data import account_data, shown_actor
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent

from .requests import PersonRequest, View, settings_form, settings_page

MAIL = "account/email/account_deleted"


class DeleteAccountForm(forms.Form):
    name = forms.CharField(
        max_length=150,
        label="Your username, to confirm",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user = user

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name != self._user.get_username():
            raise forms.ValidationError("This is not your username. Nothing was deleted.")
        return name


proven_to_send: Callable[[View], View] = reauthentication_required(allow_get=True)
proven: Callable[[View], View] = reauthentication_required
counted: Callable[[View], View] = rate_limit(action="export_account", limit_get=True)


@settings_form
@proven_to_send
def account(request: PersonRequest) -> HttpResponse:
    """The form requires a password or second factor shown within the last minutes."""
    if request.method != "POST":
        return account_page(request, DeleteAccountForm(request.user))
    form = DeleteAccountForm(request.user, request.POST)
    if not form.is_valid():
        return account_page(request, form, status=400)
    address = EmailAddress.objects.get_primary_email(request.user) or request.user.email
    ledger_name, stays = f"{PUBLISHER}{request.user.pk}", staying_of(request.user)
    try:
        pseudonym = delete_account(request.user)
    except DeletionRefused as refusal:
        form.add_error(None, str(refusal))
        return account_page(request, form, status=409)
    if address:
        # The owner should learn of it if a stranger did this.
        get_adapter(request).send_notification_mail(MAIL, request.user, email=address)
    logout(request)
    context = {"pseudonym": pseudonym, "ledger_name": ledger_name, "stays": stays}
    return render(request, "settings/account_deleted.html", context)


@settings_page
@proven
@counted
def export(request: PersonRequest) -> HttpResponse:
    packed = account_data.packed(request.user)
    return HttpResponse(
        packed,
        content_type="application/zip",
        headers={"Content-Disposition": 'attachment; filename="tickwire-account.zip"'},
    )


def account_page(request: PersonRequest, form: DeleteAccountForm, *, status: int = 200) -> HttpResponse:
    context = {"form": form, "stays": staying_of(request.user)}
    return render(request, "settings/account.html", context, status=status)


# The settings panel's page of what happened to the account: what, when and by whom.
SHOWN = 100
FACTORS = {
    "totp": "An authenticator app was",
    "webauthn": "A passkey was",
    "recovery_codes": "Recovery codes were",
}
WORDS: dict[EventKind, Callable[[dict[str, Any]], str]] = {
    EventKind.KEY_ISSUED: lambda facts: f"Key {facts['prefix']}… was issued.",
    EventKind.KEY_ROLLED: lambda facts: f"Key {facts['prefix']}… was rolled: another one replaces it.",
    EventKind.KEY_REVOKED: lambda facts: f"Key {facts['prefix']}… was revoked.",
    EventKind.ACCOUNT_CHANGED: lambda facts: (
        f"The tier changed to {facts['tier'].title()}."
        if "tier" in facts
        else ("The account was unlocked." if facts.get("active") else "The account was locked.")
    ),
    EventKind.PASSWORD_CHANGED: lambda facts: "The password changed.",
    EventKind.STREAM_CLOSED: lambda facts: f"A stream on {facts['path']} was closed.",
    EventKind.SESSION_ENDED: lambda facts: "A session ended.",
    EventKind.FACTOR_ADDED: lambda facts: f"{FACTORS[facts['factor']]} added.",
    EventKind.FACTOR_REMOVED: lambda facts: f"{FACTORS[facts['factor']]} removed.",
    EventKind.FACTOR_RENEWED: lambda facts: f"{FACTORS[facts['factor']]} replaced.",
    EventKind.RECOVERY_CODE_USED: lambda facts: "A recovery code was used.",
    EventKind.ADDRESS_ADDED: lambda facts: "An email address was added.",
    EventKind.ADDRESS_CONFIRMED: lambda facts: "An email address was confirmed.",
    EventKind.ADDRESS_REMOVED: lambda facts: "An email address was removed.",
    EventKind.ADDRESS_PREFERRED: lambda facts: "The primary email address changed.",
    EventKind.TIER_ASKED: lambda facts: f"The {facts['tier'].title()} tier was requested.",
    EventKind.TIER_WITHDRAWN: lambda facts: "The request for another tier was withdrawn.",
    EventKind.TIER_DECLINED: lambda facts: (
        f"The {facts['tier'].title()} tier was declined: {facts['answer']}"
    ),
    EventKind.PUBLISHING_ASKED: lambda facts: "Permission to publish signals was requested.",
    EventKind.PUBLISHING_WITHDRAWN: lambda facts: "The request to publish signals was withdrawn.",
    EventKind.PUBLISHING_ACCEPTED: lambda facts: "The request to publish signals was accepted.",
    EventKind.PUBLISHING_DECLINED: lambda facts: "The request to publish signals was declined.",
    EventKind.PUBLISHING_GRANTED: lambda facts: "The right to publish signals was granted.",
    EventKind.PUBLISHING_REVOKED: lambda facts: "The right to publish signals was withdrawn.",
}


class ShownEvent(NamedTuple):
    words: str
    by: str
    at: datetime


@settings_page
def events(request: PersonRequest) -> HttpResponse:
    account = Account.objects.for_user(request.user)
    found = ControlEvent.objects.filter(account_id=account.pk, kind__in=WORDS).order_by("-position")
    own = request.user.get_username()
    shown = [
        ShownEvent(
            WORDS[EventKind(event.kind)](event.facts),
            shown_actor(event.by, own),
            event.created_at,
        )
        for event in found[:SHOWN]
    ]
    return render(request, "settings/events.html", {"events": shown, "shown": SHOWN})
