"""Where Django looks for the pages of this app: importing them registers them."""

from .back_office import api_keys, people, records, tiers

__all__ = ["api_keys", "people", "records", "tiers"]
