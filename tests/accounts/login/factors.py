"""People with authenticator apps, and the codes that those show."""

from __future__ import annotations

import re
import time
from typing import Any

from allauth.mfa import app_settings
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.test import Client

PASSWORD = "a long walk 7"

# An hour, so that no code grows too old within a test.
PERIOD_S = 3600
ACTIVATE, AUTHENTICATE, CODES = (
    f"/accounts/2fa/{path}/" for path in ("totp/activate", "authenticate", "recovery-codes")
)


def log_in(name: str, password: str = PASSWORD, **options: Any) -> Client:
    """As far as the password goes."""
    client = Client(**options)
    client.post("/accounts/login/", {"login": name, "password": password})
    return client


def enrol(client: Client) -> str:
    """Set up an app; the secret that it now holds."""
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    found = re.search(r"<code[^>]*>((?:<span>\w{4}</span>)+)</code>", client.get(ACTIVATE).text)
    assert found is not None
    secret = re.sub(r"<[^>]+>", "", found[1])
    answer = client.post(ACTIVATE, {"code": code_of(secret)})
    assert answer.status_code == 302, answer.text
    return secret


def code_of(secret: str) -> str:
    return str(format_hotp_value(hotp_value(secret, int(time.time()) // app_settings.TOTP_PERIOD)))


def prove(client: Client, code: str) -> bool:
    """The second step of a login."""
    return client.post(AUTHENTICATE, {"code": code}).status_code == 302


def is_in(client: Client) -> bool:
    return client.get("/settings/keys").status_code == 200


def recovery_codes(client: Client) -> list[str]:
    found = re.search(r"<pre[^>]*>([\d\s]+)</pre>", client.get(CODES).text)
    assert found is not None
    return found[1].split()
