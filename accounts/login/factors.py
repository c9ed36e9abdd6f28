"""Second factors: whether a session has shown one, and the events and mails about each change."""

from typing import Any, Literal

from allauth.account.adapter import get_adapter
from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.login import record_authentication
from allauth.mfa.models import Authenticator
from allauth.mfa.signals import authenticator_added, authenticator_removed, authenticator_reset
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.db import transaction
from django.dispatch import Signal
from django.http import HttpRequest

from accounts.models import Account, User
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent

FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)
FactorStanding = Literal["shown", "not shown", "none"]


DEMO_LINK = "demo_link"
"""How a session is recorded that began with the demo's link."""
FACTOR_NAMES = {"totp": "Authenticator app", "webauthn": "Passkey", "recovery_codes": "Recovery codes"}


def factor_name(factor: Authenticator) -> str:
    """A passkey has the name that its owner gave it."""
    return (
        str(factor.wrap().name) if factor.type == Authenticator.Type.WEBAUTHN else FACTOR_NAMES[factor.type]
    )


def name_factors() -> None:
    """allauth has another name for what the pages of this site call second factors."""
    Authenticator._meta.verbose_name = "second factor"
    Authenticator._meta.verbose_name_plural = "second factors"
    Authenticator.__str__ = factor_name


def factor_standing(request: Any) -> FactorStanding:
    """Cached, because a request needs it several times."""
    if not hasattr(request, "second_factor"):
        request.second_factor = find_factor_standing(request)
    standing: FactorStanding = request.second_factor
    return standing


def find_factor_standing(request: HttpRequest) -> FactorStanding:
    methods = {record["method"] for record in get_authentication_records(request, request.user)}
    if not is_mfa_enabled(request.user, FACTORS):
        # The link is printed on the operator's own terminal, which is as good as a second factor.
        return "shown" if settings.DEMO and DEMO_LINK in methods else "none"
    # A session that began before the factor existed must still show it.
    return "shown" if "mfa" in methods else "not shown"


KINDS = {
    authenticator_added: EventKind.FACTOR_ADDED,
    authenticator_removed: EventKind.FACTOR_REMOVED,
    authenticator_reset: EventKind.FACTOR_RENEWED,
}


@transaction.atomic
def publish_change(
    signal: Signal, request: HttpRequest, user: User, authenticator: Authenticator, **_: Any
) -> None:
    if signal is authenticator_added and authenticator.type in FACTORS:
        # To add a factor is also to use it.
        record_authentication(request, user, "mfa", id=authenticator.pk, type=authenticator.type)
    publish_factor(KINDS[signal], authenticator, by=user.get_username())


@transaction.atomic
def mail_recovery_code_use(request: HttpRequest, user: User, authenticator: Authenticator, **_: Any) -> None:
    """A code can be copied from the owner's notes; the factor itself stays with the owner."""
    if authenticator.type != Authenticator.Type.RECOVERY_CODES:
        return
    publish_factor(EventKind.RECOVERY_CODE_USED, authenticator, by=user.get_username())
    # allauth wrote to another copy of it.
    authenticator.refresh_from_db()
    left = len(authenticator.wrap().get_unused_codes())
    get_adapter(request).send_notification_mail("mfa/email/recovery_code_used", user, {"left": left})


def publish_factor(kind: EventKind, factor: Authenticator, *, by: str) -> None:
    for account in Account.objects.filter(user_id=factor.user_id):
        ControlEvent.objects.publish(kind, by=by, account=account.pk, factor=str(factor.type))
