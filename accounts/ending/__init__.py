"""How an account ends: its owner takes their data along, and what names them goes."""

from .account_data import account_data
from .staying import staying_rows

__all__ = ["account_data", "staying_rows"]
