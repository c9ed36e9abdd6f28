"""What people type into the settings panel."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from accounts.models import ApiKey, Tier, TierRequest

OVERLAPS = (
    (0, "It stops now"),
    (1, "1 hour"),
    (24, "24 hours"),
    (72, "72 hours"),
)


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
