"""The streams that an account has open, over all processes, and no more of them than its tier allows."""

from .details import MOST_SYMBOLS, StreamDetails
from .registry import open_streams
from .stream_slots import EndCode, Slot, SlotRefusal

__all__ = ["MOST_SYMBOLS", "EndCode", "Slot", "SlotRefusal", "StreamDetails", "open_streams"]
