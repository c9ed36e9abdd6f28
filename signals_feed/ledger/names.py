"""The names of publishers, present and former: no other user may ever take one, or one that looks like it."""

from __future__ import annotations

import hashlib
import unicodedata
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import QuerySet, Value
from django.db.models.functions import Upper

from accounts.models import LOOKS_LIKE_ANOTHER, PSEUDONYM, PUBLISHER, User, look_of
from signals_feed.models import Signal

from .ledger import LedgerEntry, PublishedName, canonical

NAME_IS_TAKEN = (
    "Your username looks like that of another publisher: ask staff to give you another one, then publish."
)


class HeldNameManager(models.Manager["HeldName"]):
    def hold(self, name: str, user_id: int) -> None:
        """A name that another user holds stays theirs."""
        # In one order, so that no two wait for each other.
        held = [HeldName(digest=digest, user_id=user_id) for digest in sorted(digests_of(name))]
        self.bulk_create(held, ignore_conflicts=True)

    def release(self, name: str) -> None:
        """Of those who are gone; for the demo, which may have been here before."""
        self.filter(pk__in=digests_of(name), user=None).delete()

    def held_by_others(self, name: str, user_id: int | None) -> QuerySet[HeldName]:
        """Also by those who are gone."""
        return self.filter(pk__in=digests_of(name)).exclude(user__isnull=False, user=user_id)

    def bearer(self, name: str) -> str | None:
        """What the publisher who once had this name is called now."""
        held = self.filter(pk=digest_of(name), user__isnull=False)
        return held.values_list("user__username", flat=True).first()


class HeldName(models.Model):
    """A name is held as it is and by its look. Once the account is gone, nothing tells whose it was."""

    digest = models.CharField(max_length=64, primary_key=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        db_constraint=False,
        related_name="held_names",
    )

    objects = HeldNameManager()

    def __str__(self) -> str:
        return self.digest


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def folded(name: str) -> str:
    """Names were held like this before their looks were."""
    return unicodedata.normalize("NFKC", name).casefold()


def digests_of(name: str) -> set[str]:
    return {digest_of(name), digest_of(folded(name)), digest_of(look_of(name))}


def fault_of_taken(name: str, user_id: int | None, **_: Any) -> str:
    """Why a new name may not be this user's."""
    return LOOKS_LIKE_ANOTHER if is_taken(name, user_id) else ""


def is_taken(name: str, user_id: int | None) -> bool:
    """Whether it is, or looks like, the name of a publisher who is not this user."""
    own = Signal.objects.filter(user=user_id).values("pk")
    return (
        HeldName.objects.held_by_others(name, user_id).exists()
        or named_in_ledger(name).exclude(signal__in=own).exists()
    )


def looks_like_another(user: User) -> bool:
    """Users who published before similar names were compared keep theirs."""
    return not Signal.objects.filter(user=user).exists() and is_taken(user.username, user.pk)


def follow_rename(instance: User, update_fields: Any = None, **_: Any) -> None:
    """Before a user is saved: a publisher holds a new name first, which the database asks for."""
    if update_fields is not None and "username" not in update_fields:
        return
    renamed = User.objects.filter(pk=instance.pk).exclude(username=instance.username)
    if instance.pk is None or not renamed.exists() or not Signal.objects.filter(user=instance).exists():
        return
    if instance.username.startswith(PSEUDONYM):
        # The account is being deleted, and no former name leads to the pseudonym.
        HeldName.objects.filter(user=instance).update(user=None)
    elif is_taken(instance.username, instance.pk):
        raise ValidationError(LOOKS_LIKE_ANOTHER)
    HeldName.objects.hold(instance.username, instance.pk)


def named_in_ledger(name: str) -> QuerySet[LedgerEntry]:
    """The entries of version 0.1.0, which named publishers as they were called then; not those of a demo that
    was removed."""
    named = LedgerEntry.objects.alias(publisher=PublishedName("payload"))
    removed = LedgerEntry.objects.filter(kind=LedgerEntry.Kind.REMOVE).values("signal")
    return named.filter(publisher=Upper(Value(canonical(name)))).exclude(signal__in=removed)


def is_named_in_ledger(user: User) -> bool:
    """Whether an entry has a name of theirs, even an earlier one, and not the pseudonym."""
    own = LedgerEntry.objects.filter(
        kind=LedgerEntry.Kind.PUBLISH, signal__in=Signal.objects.filter(user=user).values("pk")
    )
    pseudonym = Upper(Value(canonical(f"{PUBLISHER}{user.pk}")))
    return own.alias(publisher=PublishedName("payload")).exclude(publisher=pseudonym).exists()
