"""Signals and their ledger in the back office."""

from . import ledger, signals  # noqa: F401
