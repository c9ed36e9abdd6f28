"""Users who signed up, never confirmed an address and never came in: anybody can make them, by any name."""

from __future__ import annotations

from datetime import datetime, timedelta

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import CharField, Exists, OuterRef, QuerySet
from django.db.models.functions import Cast

from .models import User


def unconfirmed_users(now: datetime) -> QuerySet[User]:
    """Nothing may hang on them but their address, whatever will refer to users one day. Whom staff made or
    locked out is theirs to decide on."""
    days = settings.UNCONFIRMED_KEPT_DAYS
    if not days:
        return User.objects.none()
    found = User.objects.filter(
        date_joined__lt=now - timedelta(days=days),
        last_login=None,
        is_active=True,
        is_staff=False,
        is_superuser=False,
        groups=None,
        user_permissions=None,
    )
    addresses = EmailAddress.objects.filter(user=OuterRef("pk"))
    found = found.filter(Exists(addresses), ~Exists(addresses.filter(verified=True)))
    for relation in User._meta.related_objects:
        model = relation.related_model
        if model is not EmailAddress:
            rows = model._default_manager.filter(**{relation.field.name: OuterRef("pk")})
            found = found.filter(~Exists(rows))
    by_staff = LogEntry.objects.filter(
        content_type=ContentType.objects.get_for_model(User),
        object_id=Cast(OuterRef("pk"), CharField()),
    )
    return found.filter(~Exists(by_staff))
