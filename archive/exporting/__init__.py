"""Copies of days, for others or for a safe place."""

from .export import Exporting
from .target import why_no_target

__all__ = ["Exporting", "why_no_target"]
