"""What people type into the account and settings pages."""

from __future__ import annotations

from typing import Any

from allauth.account.forms import LoginForm as AllauthLoginForm
from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError

from .loopback import is_loopback
from .models import ApiKey

OVERLAPS = (
    (0, "It stops now"),
    (1, "1 hour"),
    (24, "24 hours"),
    (72, "72 hours"),
)


class LoginForm(AllauthLoginForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].label = "Username or e-mail"
        self.fields["login"].widget.attrs["autocomplete"] = "username"
        self.fields["remember"].label = "Stay logged in on this device"

    @property
    def demo_is_elsewhere(self) -> bool:
        """The demo login exists, but not for a visitor from another machine."""
        return settings.DEMO and not is_loopback(self.request)


def refuse_unprintable(text: str) -> None:
    # Line breaks and direction marks would let a name imitate its surroundings in lists and logs.
    if not text.isprintable():
        raise ValidationError("A name is one line of printable characters.")


class IssueKeyForm(forms.Form):
    name = forms.CharField(
        max_length=ApiKey._meta.get_field("name").max_length,
        validators=[refuse_unprintable],
        help_text="What it is for, such as “backtests on the laptop”.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class RollKeyForm(forms.Form):
    overlap_hours = forms.TypedChoiceField(
        choices=OVERLAPS, coerce=int, initial=24, label="How long the old key keeps working"
    )
