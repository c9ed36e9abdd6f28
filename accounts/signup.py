"""Signing up: who tries an address that has an account already learns nothing, and its owner gets a mail."""

from __future__ import annotations

import secrets
from typing import Any

from allauth.account.forms import SignupForm as AllauthSignupForm
from django.db import transaction
from django.http import HttpRequest


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
