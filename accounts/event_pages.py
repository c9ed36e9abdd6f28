"""The settings panel's page of what happened to the account: what, when and by whom."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from .models import Account, ControlEvent
from .pages import PersonRequest

SHOWN = 100
FACTORS = {
    "totp": "An authenticator app was",
    "webauthn": "A passkey was",
    "recovery_codes": "Recovery codes were",
}
WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "key.issued": lambda facts: f"Key {facts['prefix']}… was issued.",
    "key.rolled": lambda facts: f"Key {facts['prefix']}… was rolled: another follows it.",
    "key.revoked": lambda facts: f"Key {facts['prefix']}… was revoked.",
    "account.changed": lambda facts: (
        f"The tier changed to {facts['tier'].title()}."
        if "tier" in facts
        else "Access was taken away or given back."
    ),
    "password.changed": lambda facts: "The password changed.",
    "stream.closed": lambda facts: f"A stream on {facts['path']} was closed.",
    "session.ended": lambda facts: "A session ended.",
    "factor.added": lambda facts: f"{FACTORS[facts['factor']]} added.",
    "factor.removed": lambda facts: f"{FACTORS[facts['factor']]} removed.",
    "factor.renewed": lambda facts: f"{FACTORS[facts['factor']]} made anew.",
    "tier.asked": lambda facts: f"The {facts['tier'].title()} tier was asked for.",
    "tier.withdrawn": lambda facts: "The request for another tier was withdrawn.",
    "tier.declined": lambda facts: f"The {facts['tier'].title()} tier was declined: {facts['answer']}",
}


class Event(NamedTuple):
    words: str
    by: str
    at: datetime


@require_safe
@login_required
@never_cache
def events(request: PersonRequest) -> HttpResponse:
    account = Account.objects.for_user(request.user)
    found = ControlEvent.objects.filter(account_id=account.pk, kind__in=WORDS).order_by("-position")
    told = [Event(WORDS[event.kind](event.facts), event.by, event.created_at) for event in found[:SHOWN]]
    return render(request, "settings/events.html", {"events": told, "shown": SHOWN})
