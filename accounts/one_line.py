"""What people type appears in lists, mails and logs: names and reasons are one line."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

LONGEST_NAME = 60


def refuse_unprintable(text: str) -> None:
    # Line breaks and direction marks would let a name imitate its surroundings in lists and logs.
    if not text.isprintable():
        raise ValidationError("Enter one line of printable characters.")


class OneLineField(forms.CharField):
    def __init__(self, max_length: int = LONGEST_NAME, **options: Any) -> None:
        widget = forms.TextInput(attrs={"autocomplete": "off"})
        super().__init__(max_length=max_length, validators=[refuse_unprintable], widget=widget, **options)
