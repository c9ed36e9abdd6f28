"""What cannot be changed afterwards: each publication, cancellation and closure, chained by hash."""

from .ledger import FIRST_PREVIOUS_HASH, LedgerEntry

__all__ = ["FIRST_PREVIOUS_HASH", "LedgerEntry"]
