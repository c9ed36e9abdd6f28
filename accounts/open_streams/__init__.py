"""The streams that an account has open, over all processes, and no more of them than its tier allows."""

from .registry import open_streams
from .stream_slots import RETRY_AFTER_S, EndCode, Slot, SlotRefusal

__all__ = ["EndCode", "RETRY_AFTER_S", "Slot", "SlotRefusal", "open_streams"]
