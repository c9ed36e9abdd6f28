"""Whether a session has shown a second factor, as the back office demands; and what became of factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.login import record_authentication
from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from django.db import transaction
from django.http import HttpRequest

from accounts.models import Account, User
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent

FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)
FactorStanding = Literal["shown", "not shown", "none"]


def never(request: HttpRequest) -> bool:
    return False


counts_as_shown: Callable[[HttpRequest], bool] = never
"""Whether a session of somebody without a factor began with something as good."""


def factor_standing(request: HttpRequest) -> FactorStanding:
    """Asked several times in a request; the database is asked once."""
    known: FactorStanding | None = getattr(request, "_second_factor", None)
    if known is None:
        known = _factor_standing(request)
        request._second_factor = known  # type: ignore[attr-defined]
    return known


def _factor_standing(request: HttpRequest) -> FactorStanding:
    if not is_mfa_enabled(request.user, FACTORS):
        return "shown" if counts_as_shown(request) else "none"
    # A session that began with the password alone, before there was a factor, has still to show it.
    records = get_authentication_records(request, request.user)
    return "shown" if any(record["method"] == "mfa" for record in records) else "not shown"


def note_added(request: HttpRequest, user: User, authenticator: Authenticator, **_: Any) -> None:
    if authenticator.type in FACTORS:
        # Whoever adds one has just used it.
        record_authentication(request, user, "mfa", id=authenticator.pk, type=authenticator.type)
    publish(EventKind.FACTOR_ADDED, user, authenticator)


def note_removed(user: User, authenticator: Authenticator, **_: Any) -> None:
    publish(EventKind.FACTOR_REMOVED, user, authenticator)


def note_renewed(user: User, authenticator: Authenticator, **_: Any) -> None:
    publish(EventKind.FACTOR_RENEWED, user, authenticator)


@transaction.atomic
def publish(kind: EventKind, user: User, authenticator: Authenticator) -> None:
    for account in Account.objects.filter(user_id=user.pk):
        ControlEvent.objects.publish(
            kind, by=user.get_username(), account=account.pk, factor=str(authenticator.type)
        )
