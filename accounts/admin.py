"""Where Django looks for the pages of this app: importing them registers them."""

from .back_office import key_pages, people, records, tiers

__all__ = ["key_pages", "people", "records", "tiers"]
