"""Which mail server EMAIL_URL names, as Django's settings."""

from typing import Any
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.validators import validate_email

from .addresses import read_options

BACKENDS = {
    "smtp": "smtp",
    "smtp+tls": "smtp",
    "smtps": "smtp",
    "smtp+ssl": "smtp",
    "consolemail": "console",
    "memorymail": "locmem",
    "filemail": "filebased",
    "dummymail": "dummy",
}
PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465, "smtp+ssl": 465}
SHAPE = (
    "EMAIL_URL should look like smtp+tls://user:password@host:587 or smtps://user:password@host:465, or be "
    "dummymail:// to send none."
)


def read_contact_email(text: str) -> str:
    """The address alone, as it stands in links."""
    if text:
        try:
            validate_email(text)
        except ValidationError:
            raise ImproperlyConfigured(
                f"CONTACT_EMAIL should be an address such as support@example.com, not {text!r}."
            ) from None
    return text


def read_email_url(url: str) -> dict[str, Any]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ImproperlyConfigured(SHAPE) from None
    scheme = parts.scheme
    if scheme not in BACKENDS or (scheme in PORTS and not parts.hostname):
        raise ImproperlyConfigured(SHAPE)
    read_options("EMAIL_URL", url, set())
    return {
        "EMAIL_BACKEND": f"django.core.mail.backends.{BACKENDS[scheme]}.EmailBackend",
        "EMAIL_HOST": parts.hostname or "",
        "EMAIL_PORT": port or PORTS.get(scheme, 0),
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        # The connection begins in the clear and turns to TLS, or it is TLS from its first byte on.
        "EMAIL_USE_TLS": scheme == "smtp+tls",
        "EMAIL_USE_SSL": scheme in ("smtps", "smtp+ssl"),
        "EMAIL_FILE_PATH": unquote(parts.path[1:]) if scheme == "filemail" else None,
    }
