"""The names under which signals were published, for good."""

from .ledger import LedgerEntry, canonical


def has_published_as(name: str) -> bool:
    """Whether an entry names a publisher so, in whatever case: another would be taken for them."""
    written = canonical({"user": name})[1:-1]
    return LedgerEntry.objects.filter(kind=LedgerEntry.Kind.PUBLISH, payload__icontains=written).exists()
