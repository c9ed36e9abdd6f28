"""The names under which signals were published: nobody else may take one, ever."""

from __future__ import annotations

import hashlib
import unicodedata

from django.db import models
from django.db.models import QuerySet, Value
from django.db.models.functions import Upper

from accounts.models import PUBLISHER, User
from signals_feed.models import Signal

from .ledger import LedgerEntry, canonical
from .published_name import PublishedName


class HeldNameManager(models.Manager["HeldName"]):
    def hold(self, name: str) -> None:
        self.bulk_create([HeldName(digest=digest_of(name))], ignore_conflicts=True)


class HeldName(models.Model):
    """Tells of a name that it is taken, and not whose it was: that outlives the account."""

    digest = models.CharField(max_length=64, primary_key=True)

    objects = HeldNameManager()

    def __str__(self) -> str:
        return self.digest


def digest_of(name: str) -> str:
    """In whatever case: another would be taken for them."""
    return hashlib.sha256(unicodedata.normalize("NFKC", name).casefold().encode()).hexdigest()


def named_in_ledger(name: str) -> QuerySet[LedgerEntry]:
    """The entries of version 0.1.0, which named publishers as they were called then."""
    named = LedgerEntry.objects.alias(publisher=PublishedName("payload"))
    return named.filter(publisher=Upper(Value(canonical(name))))


def is_named_in_ledger(user: User) -> bool:
    """Whether an entry has a name of theirs, even an earlier one, and not the pseudonym."""
    own = LedgerEntry.objects.filter(
        kind=LedgerEntry.Kind.PUBLISH, signal__in=Signal.objects.filter(user=user).values("pk")
    )
    pseudonym = Upper(Value(canonical(f"{PUBLISHER}{user.pk}")))
    return own.alias(publisher=PublishedName("payload")).exclude(publisher=pseudonym).exists()


def has_published_as(name: str) -> bool:
    return HeldName.objects.filter(pk=digest_of(name)).exists() or named_in_ledger(name).exists()
