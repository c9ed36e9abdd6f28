"""The pages of this app: importing them registers them."""

from . import events, keys, logins, tiers, users

__all__ = ["events", "keys", "logins", "tiers", "users"]
