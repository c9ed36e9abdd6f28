"""What becomes of second factors: each change is told to their owner's other sessions and pages."""

from typing import Any

from allauth.account.internal.flows.login import record_authentication
from allauth.mfa.models import Authenticator
from allauth.mfa.signals import authenticator_added, authenticator_removed, authenticator_reset
from django.db import transaction
from django.dispatch import Signal
from django.http import HttpRequest

from accounts.models import Account, User
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent

FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


KINDS = {
    authenticator_added: EventKind.FACTOR_ADDED,
    authenticator_removed: EventKind.FACTOR_REMOVED,
    authenticator_reset: EventKind.FACTOR_RENEWED,
}


@transaction.atomic
def tell(signal: Signal, request: HttpRequest, user: User, authenticator: Authenticator, **_: Any) -> None:
    if signal is authenticator_added and authenticator.type in FACTORS:
        # Whoever adds one has just used it.
        record_authentication(request, user, "mfa", id=authenticator.pk, type=authenticator.type)
    for account in Account.objects.filter(user_id=user.pk):
        ControlEvent.objects.publish(
            KINDS[signal], by=user.get_username(), account=account.pk, factor=str(authenticator.type)
        )
