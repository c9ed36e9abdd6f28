"""Encrypts stored texts with a key derived from the pepper. Texts sealed with a previous pepper can still be
opened."""

import base64
import hmac

from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings


def all_peppers() -> tuple[str, ...]:
    """The current one first."""
    return (settings.KEY_PEPPER, *settings.KEY_PEPPER_FALLBACKS)


def ciphers() -> list[Fernet]:
    digests = (hmac.digest(pepper.encode(), b"second factors", "sha256") for pepper in all_peppers())
    return [Fernet(base64.urlsafe_b64encode(digest)) for digest in digests]


def seal(text: str) -> str:
    return ciphers()[0].encrypt(text.encode()).decode()


def unseal(sealed: str) -> str:
    """Raises InvalidToken if no pepper opens it."""
    return MultiFernet(ciphers()).decrypt(sealed).decode()
