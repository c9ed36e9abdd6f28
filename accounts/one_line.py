"""What people type appears in lists, mails and logs: names and reasons are one line."""

import unicodedata
from functools import partial
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

LONGEST_NAME = 60
# What a pasted text may have though it does not print: they join letters and the parts of an emoji.
JOINERS = "\u200c\u200d"


def refuse_unprintable(text: str) -> None:
    # Line breaks and direction marks would let a name imitate its surroundings in lists and logs.
    if not text.isprintable():
        raise ValidationError("Enter one line of printable characters.")


def refuse_invisible(text: str, allowed: str = JOINERS) -> None:
    """Of texts that staff paste and others read, such as titles: any kind of space may stand in them."""
    for place, letter in enumerate(text, start=1):
        if not (letter.isprintable() or letter in allowed or unicodedata.category(letter) == "Zs"):
            raise ValidationError(
                f"Character {place} of this text is invisible (U+{ord(letter):04X}). Remove it."
            )


refuse_invisible_in_lines = partial(refuse_invisible, allowed=f"{JOINERS}\n\r\t")


class OneLineField(forms.CharField):
    def __init__(self, max_length: int = LONGEST_NAME, **options: Any) -> None:
        widget = forms.TextInput(attrs={"autocomplete": "off"})
        super().__init__(max_length=max_length, validators=[refuse_unprintable], widget=widget, **options)
