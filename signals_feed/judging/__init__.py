"""Watching active signals and closing them."""

from .closing import Closing, close_signal

__all__ = ["Closing", "close_signal"]
