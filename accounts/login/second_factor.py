"""What becomes of second factors: each change is told to their owner's other sessions and pages."""

from typing import Any

from allauth.account.internal.flows.login import record_authentication
from allauth.mfa.models import Authenticator
from django.db import transaction
from django.http import HttpRequest

from accounts.models import Account, User
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent

FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


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
