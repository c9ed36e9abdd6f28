"""The ledger as the log of checkpoints reads it: the texts of its entries are the leaves of a tree."""

from collections.abc import Iterable

from .ledger import LedgerEntry, LedgerHead


class LedgerTexts:
    def count(self) -> int:
        return LedgerHead.objects.now().position

    def texts(self, after: int, upto: int) -> Iterable[str]:
        entries = LedgerEntry.objects.filter(position__gt=after, position__lte=upto).order_by("position")
        return entries.values_list("payload", flat=True)
