"""Logging in, second factors and sessions."""

from .factors import DEMO_LINK
from .sessions import VISITOR

__all__ = ["DEMO_LINK", "VISITOR"]
