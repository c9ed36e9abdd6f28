"""What the log of the back office and the events say of one person."""

import json
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Q, QuerySet

from accounts.models import Account, StaffRequest, User
from core.events.outbox import ControlEvent


def log_about(user: User, account: Account | None) -> QuerySet[LogEntry]:
    """What staff did to them and to what is theirs."""
    of_user: list[QuerySet[Any]] = [
        *(model._default_manager.filter(user=user) for model in (EmailAddress, Authenticator, UserSession)),
        User.objects.filter(pk=user.pk),
    ]
    if account is not None:
        of_user += [Account.objects.filter(pk=account.pk), account.keys.all(), *requests_of(account)]
    about = Q(pk__in=[])
    for rows in of_user:
        ids = [str(pk) for pk in rows.values_list("pk", flat=True)]
        about |= Q(content_type=ContentType.objects.get_for_model(rows.model), object_id__in=ids)
    return LogEntry.objects.filter(about).select_related("content_type")


def requests_of(account: Account) -> list[QuerySet[Any]]:
    """Of every kind, also those of rooms above."""
    kinds = [each for each in account._meta.related_objects if issubclass(each.related_model, StaffRequest)]
    return [kind.related_model._default_manager.filter(account=account) for kind in kinds]


def events_by(name: str, account_id: int | None) -> QuerySet[ControlEvent]:
    own = ControlEvent.objects.filter(by=name)
    if name.lower() in settings.ACCOUNT_USERNAME_BLACKLIST:
        # From before it was reserved: under that name the service itself did things to others.
        own = own.filter(account_id=account_id).exclude(account_id=None)
    return own


def without_objects(message: str, pseudonym: str) -> str:
    """Of a form Django keeps what was changed on which row, as JSON. Our own sentences name nobody."""
    try:
        changes = json.loads(message)
    except ValueError:
        return message
    for change in changes if isinstance(changes, list) else ():
        for facts in change.values():
            if "object" in facts:
                facts["object"] = pseudonym
    return json.dumps(changes)


def shown_actor(by: str, own: str) -> str:
    """The customer's own name, or just that it was staff, whose login names are nobody else's business."""
    return by if by in ("", own) else "staff"
