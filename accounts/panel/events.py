"""The settings panel's page of what happened to the account: what, when and by whom."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from django.http import HttpResponse
from django.shortcuts import render

from accounts.ending.traces import shown_actor
from accounts.models import Account
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent

from .requests import PersonRequest, settings_page

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
