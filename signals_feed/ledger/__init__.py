"""What was published and how it ended, as entries that nobody changes unnoticed."""

from .ledger import LedgerHead

__all__ = ["LedgerHead"]
