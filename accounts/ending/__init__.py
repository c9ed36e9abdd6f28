"""How an account ends: its owner takes their data along, and what names them goes."""

from .account_data import account_data

__all__ = ["account_data"]
