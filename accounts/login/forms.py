"""allauth's forms with the texts of this site. Signing up does not reveal whether an address has an account;
its owner gets a mail."""

import secrets
from typing import Any, ClassVar

from allauth.account import forms
from allauth.account.adapter import get_adapter
from allauth.account.internal.userkit import filter_users_by_email
from allauth.account.models import EmailAddress
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest

from accounts.models import User

LABELS = {
    "login": "Username or email",
    "remember": "Stay logged in on this device",
    "oldpassword": "Current password",
    "password2": "Repeat the password",
}

RULES = (
    "At least 8 characters: not only digits, not a common password, and nothing like your username or email."
)


class SiteWords:
    """A field has its label and no placeholder that repeats it."""

    labels: ClassVar[dict[str, str]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: dict[str, Any] = self.fields  # type: ignore[attr-defined]
        for name, field in fields.items():
            field.label = (LABELS | self.labels).get(name, field.label)
            field.widget.attrs.pop("placeholder", None)
            if name == "password1":
                field.help_text = RULES


class NewPassword(SiteWords):
    labels: ClassVar[dict[str, str]] = {"password1": "New password", "password2": "Repeat the new password"}


class AddEmailForm(SiteWords, forms.AddEmailForm):  # type: ignore[misc]
    pass


class ResetPasswordForm(SiteWords, forms.ResetPasswordForm):  # type: ignore[misc]
    def clean_email(self) -> str:
        """An address that was never confirmed may belong to another person, because of a typo."""
        email: str = super().clean_email()
        unproven = EmailAddress.objects.filter(email=email.lower(), verified=False, primary=False)
        owners = set(unproven.values_list("user_id", flat=True))
        self.users: list[User] = [user for user in self.users if user.pk not in owners]
        return email

    def save(self, request: HttpRequest, **options: Any) -> str:
        """The owner of a locked account is not shown the message for unknown accounts."""
        email = self.cleaned_data["email"]
        if not self.users and filter_users_by_email(email, is_active=False, for_login=True):
            get_adapter().send_mail("settings/email/account_locked", email, {})
            return str(email)
        return str(super().save(request, **options))


class ReauthenticateForm(SiteWords, forms.ReauthenticateForm):  # type: ignore[misc]
    pass


class SetPasswordForm(SiteWords, forms.SetPasswordForm):  # type: ignore[misc]
    pass


class ChangePasswordForm(NewPassword, forms.ChangePasswordForm):  # type: ignore[misc]
    pass


class ResetPasswordKeyForm(NewPassword, forms.ResetPasswordKeyForm):  # type: ignore[misc]
    pass


class LoginForm(SiteWords, forms.LoginForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].widget.attrs["autocomplete"] = "username"

    def user_credentials(self) -> dict[str, Any]:
        """Only with the backend that tries addresses and names. With both, the password is hashed once for an
        unknown address and twice for a known one, and the time gives away which it is."""
        credentials: dict[str, Any] = super().user_credentials()
        credentials.pop("email", None)
        return credentials

    @property
    def is_demo(self) -> bool:
        """The demo's staff have no password, so the page explains their link."""
        return bool(settings.DEMO)


class SignupForm(SiteWords, forms.SignupForm):  # type: ignore[misc]
    def try_save(self, request: HttpRequest) -> Any:
        if self.account_already_exists:
            self._work_as_for_a_new_one(request)
        return super().try_save(request)

    def _work_as_for_a_new_one(self, request: HttpRequest) -> None:
        """Hashes the password, writes all rows and rolls them back: a quicker answer would reveal that the
        address has an account."""
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
