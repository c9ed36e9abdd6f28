"""The names under which signals were published, for good."""

from django.db.models import QuerySet, Value
from django.db.models.functions import Upper

from .ledger import LedgerEntry, canonical
from .published_name import PublishedName


def published_as(name: str) -> QuerySet[LedgerEntry]:
    """The entries that name a publisher so, in whatever case: another would be taken for them."""
    named = LedgerEntry.objects.alias(publisher=PublishedName("payload"))
    return named.filter(publisher=Upper(Value(canonical(name))))


def has_published_as(name: str) -> bool:
    return published_as(name).exists()
