"""What people type into the account and settings pages."""

from __future__ import annotations

from typing import Any

from allauth.account.forms import LoginForm as AllauthLoginForm
from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError

from .models import ApiKey, Tier, TierRequest

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


def refuse_unprintable(text: str) -> None:
    # Line breaks and direction marks would let a name imitate its surroundings in lists and logs.
    if not text.isprintable():
        raise ValidationError("Write one line of printable characters.")


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


class TierRequestForm(forms.Form):
    wanted = forms.ModelChoiceField(
        Tier.objects.none(), label="Tier", empty_label=None, error_messages={"required": "Choose a tier."}
    )
    why = forms.CharField(
        label="Why",
        max_length=TierRequest._meta.get_field("why").max_length,
        validators=[refuse_unprintable],
        help_text="A sentence on what you build, and what your tier lacks for it.",
        error_messages={"required": "Say in a sentence why."},
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, current: Tier, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        wanted = self.fields["wanted"]
        assert isinstance(wanted, forms.ModelChoiceField)  # noqa: S101 - declared above
        wanted.queryset = Tier.objects.exclude(pk=current.pk)
