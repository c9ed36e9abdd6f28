"""Keys that open the API for an account: issued, looked up and remembered, and those of our own pages."""

from .cache import ApiKeyCache, MarkedKeyCache, key_cache
from .caller import BROWSER_TOKEN_LEAD, Caller
from .issuing import issue_key, revoke_key

__all__ = [
    "ApiKeyCache",
    "BROWSER_TOKEN_LEAD",
    "Caller",
    "MarkedKeyCache",
    "issue_key",
    "key_cache",
    "revoke_key",
]
