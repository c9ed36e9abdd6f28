"""The streams that an account has open, over all processes, and no more of them than its tier allows."""

from .registry import open_streams
from .stream_slots import EndCode, Slot, SlotRefusal

__all__ = ["EndCode", "Slot", "SlotRefusal", "open_streams"]
