"""Logging in and signing up. Signing up with an address that has an account already does not reveal that, and
the owner gets a mail."""

import secrets
from typing import Any

from allauth.account.forms import LoginForm as AllauthLoginForm
from allauth.account.forms import SignupForm as AllauthSignupForm
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest


class LoginForm(AllauthLoginForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].label = "Username or e-mail"
        self.fields["login"].widget.attrs["autocomplete"] = "username"
        self.fields["remember"].label = "Stay logged in on this device"

    def user_credentials(self) -> dict[str, Any]:
        """By the one way that tries addresses and names: by both, the password would be hashed once for an
        address that nobody has and twice for one of an account, and the time would tell which it is."""
        credentials: dict[str, Any] = super().user_credentials()
        credentials.pop("email", None)
        return credentials

    @property
    def is_demo(self) -> bool:
        """The demo's staff have no password: the page says how they come in."""
        return bool(settings.DEMO)


class SignupForm(AllauthSignupForm):  # type: ignore[misc]
    def try_save(self, request: HttpRequest) -> Any:
        if self.account_already_exists:
            self._work_as_for_a_new_one(request)
        return super().try_save(request)

    def _work_as_for_a_new_one(self, request: HttpRequest) -> None:
        """The password is hashed and all rows are written, and then they are taken back: otherwise a quick
        answer would say what the page does not."""
        address = self.cleaned_data["email"]
        self.cleaned_data["email"] = f"{secrets.token_hex(16)}@nobody.invalid"
        self.account_already_exists = False
        try:
            with transaction.atomic():
                self.save(request)
                transaction.set_rollback(True)
        finally:
            self.cleaned_data["email"] = address
            self.account_already_exists = True
