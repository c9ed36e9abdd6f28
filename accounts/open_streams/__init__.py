"""The streams that an account has open, over all processes, and no more of them than its tier allows."""

from .registry import open_streams
from .stream_slots import MOST_SYMBOLS, EndCode, Slot, SlotRefusal, StreamDetails

__all__ = ["MOST_SYMBOLS", "EndCode", "Slot", "SlotRefusal", "StreamDetails", "open_streams"]
