"""What allauth asks of us: who may prove themselves how, and how the secrets of second factors are kept."""

from __future__ import annotations

import base64
import hmac
import logging
import secrets
from typing import Any, ClassVar

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context as current
from allauth.mfa.adapter import DefaultMFAAdapter
from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.contrib.sites.shortcuts import get_current_site
from django.http import HttpRequest, HttpResponseBase

from . import login_guard
from .mails import outgoing

logger = logging.getLogger(__name__)


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    error_messages: ClassVar[dict[str, Any]] = DefaultAccountAdapter.error_messages | {
        "too_many_login_attempts": "Too many attempts failed. Wait a quarter of an hour, log in with a"
        " passkey, or let us mail you a link to a new password.",
    }

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        self._counted = login_guard.admit(request, credentials)
        if not self._counted:
            raise self.validation_error("too_many_login_attempts")

    def _rollback_login_failed_rl_usage(self) -> None:
        for used in self._counted:
            used.rollback()

    def _delete_login_attempts_cached_email(self, request: HttpRequest, **credentials: Any) -> None:
        login_guard.forget(request, credentials)

    def post_login(self, request: HttpRequest, user: Any, **how: Any) -> HttpResponseBase:
        response: HttpResponseBase = super().post_login(request, user, **how)
        login_guard.remember(response, user)
        return response

    def get_reauthentication_methods(self, user: Any) -> list[dict[str, Any]]:
        """Who has a second factor confirms with it: the password alone must not take it away."""
        methods: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        stronger = [method for method in methods if method["id"] != "reauthenticate"]
        return stronger or methods

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """As allauth's, but made here and sent elsewhere."""
        request = current.request
        about = {"request": request, "email": email, "current_site": get_current_site(request), **context}
        outgoing.send(template_prefix, self.render_mail(template_prefix, email, about))


class FactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    error_messages: ClassVar[dict[str, Any]] = DefaultMFAAdapter.error_messages | {
        "incorrect_code": "The code is wrong, too old or was used before. Try the next one.",
        "unverified_email": "Confirm your e-mail address first, on the page E-mail: without it you could be"
        " locked out of your own account.",
        "add_email_blocked": "An address can be added only while there is no second factor.",
    }

    def encrypt(self, text: str) -> str:
        return cipher().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        try:
            return cipher().decrypt(encrypted_text).decode()
        except InvalidToken:
            logger.error("A second factor cannot be read: KEY_PEPPER is not the one that it was made with")
            # Nobody knows this one, so that no code is right.
            return base64.b32encode(secrets.token_bytes(20)).decode()

    def generate_authenticator_name(self, user: Any, type: Any) -> str:  # noqa: A002 - allauth's name
        number = user.authenticator_set.filter(type=type).count() + 1
        return "Passkey" if number == 1 else f"Passkey {number}"


def cipher() -> Fernet:
    digest = hmac.digest(settings.KEY_PEPPER.encode(), b"second factors", "sha256")
    return Fernet(base64.urlsafe_b64encode(digest))
