"""Logging in, second factors and sessions."""

from .sessions import VISITOR

__all__ = ["VISITOR"]
