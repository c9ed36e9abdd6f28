"""Email addresses, each of which can open an account: each change is kept as an event and
told to the owner."""

from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.models import EmailAddress
from allauth.account.signals import email_added, email_changed, email_confirmed, email_removed
from django.db import transaction
from django.dispatch import Signal
from django.http import HttpRequest

from accounts.models import Account
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent

KINDS = {
    email_added: EventKind.ADDRESS_ADDED,
    email_confirmed: EventKind.ADDRESS_CONFIRMED,
    email_removed: EventKind.ADDRESS_REMOVED,
    email_changed: EventKind.ADDRESS_PREFERRED,
}
# allauth itself tells of the others.
MAILS = {email_added: "account/email/email_added", email_confirmed: "account/email/email_confirm"}


@transaction.atomic
def publish_change(
    signal: Signal,
    request: HttpRequest,
    email_address: EmailAddress | None = None,
    to_email_address: EmailAddress | None = None,
    **_: Any,
) -> None:
    address = to_email_address or email_address
    assert address is not None  # noqa: S101 - allauth names one of them
    user = address.user
    for account in Account.objects.filter(user_id=user.pk):
        ControlEvent.objects.publish(KINDS[signal], by=user.get_username(), account=account.pk)
    # It goes to the primary address, which has nothing to hear of itself.
    if signal in MAILS and not address.primary:
        get_adapter(request).send_notification_mail(MAILS[signal], user, {"address": address.email})
