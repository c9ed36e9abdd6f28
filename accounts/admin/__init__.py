"""The pages of this app: importing them registers them."""

from . import events, keys, logins, tier_requests, tiers, users

__all__ = ["events", "keys", "logins", "tier_requests", "tiers", "users"]
