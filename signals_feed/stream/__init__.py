"""The stream of published and closed signals."""

from .signal_stream import CHANNEL

__all__ = ["CHANNEL"]
