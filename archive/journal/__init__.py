"""The open day: what the engine decided, in files that are on the disk before the database says so."""

from .frames import Heard, Opened
from .segments import JournalFolder, Segment
from .writer import JournalWriter

__all__ = ["Heard", "JournalFolder", "JournalWriter", "Opened", "Segment"]
