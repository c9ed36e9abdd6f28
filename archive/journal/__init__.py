"""The open day: what the engine decided, in files that are on the disk before the database says so."""

from .frames import HeardRecords, Opened
from .segments import TickJournal, TickSegment
from .writer import TickJournalWriter

__all__ = ["HeardRecords", "TickJournal", "TickJournalWriter", "Opened", "TickSegment"]
