"""The public pages of publishers, their signals and the proof of each result."""

from .publisher import demo_statements

__all__ = ["demo_statements"]
