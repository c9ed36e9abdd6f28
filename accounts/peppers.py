"""The pepper that keys are hashed with, and those of before, which still open what was made with them.

A process that is told of a new pepper as a fallback knows the keys that others hash with it already, so that
processes may change over one after the other."""

import hmac

from django.conf import settings

from .key_text import digest_of

NAME_LENGTH = 12


def all_peppers() -> tuple[str, ...]:
    """The current one first."""
    return (settings.KEY_PEPPER, *settings.KEY_PEPPER_FALLBACKS)


def name_of(pepper: str) -> str:
    """Stands beside each digest. It says which pepper that was made with, and nothing about the pepper."""
    return hmac.digest(pepper.encode(), b"the name of this pepper", "sha256").hex()[:NAME_LENGTH]


def current_name() -> str:
    return name_of(settings.KEY_PEPPER)


def possible_digests(key: str) -> list[str]:
    return [digest_of(key, pepper) for pepper in all_peppers()]


def hashed(key: str) -> dict[str, str]:
    """The columns of a new key."""
    return {"digest": digest_of(key, settings.KEY_PEPPER), "pepper_name": current_name()}
