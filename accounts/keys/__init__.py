"""Keys that open the API for an account: issued, looked up and remembered, and those of our own pages."""

from .browser_tokens import BROWSER_TOKEN_LEAD
from .cache import ApiKeyCache, MarkedKeyCache, key_cache
from .caller import Caller
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
