"""Fields of all forms: numbers as pages write them, with their separators, and text of one line."""

from __future__ import annotations

import re
import unicodedata
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError

# One comma without a point may be a decimal one; where there are several, or a point, they are separators.
SEPARATED = re.compile(r"[-+\N{MINUS SIGN}]?[0-9]{1,3}(?:(?:,[0-9]{3})+\.[0-9]+|(?:,[0-9]{3}){2,})")
SEPARATED_WHOLE = re.compile(r"[-+\N{MINUS SIGN}]?[0-9]{1,3}(?:,[0-9]{3})+")
AMBIGUOUS = "A comma may separate thousands or decimals. Write 4090.5 or 4,090.50."
NO_WHOLE = "Write a whole number such as 4090 or 4,090."


def without_separators(text: str, pattern: re.Pattern[str] = SEPARATED) -> str:
    text = text.strip()
    plain = text.replace(",", "") if pattern.fullmatch(text) else text
    return plain.replace("\N{MINUS SIGN}", "-")


class SeparatedNumber(forms.Field):
    """What the kinds share. Those who ask for more than a number say so in their own `error_messages`."""

    separated = SEPARATED
    default_error_messages: ClassVar[dict[str, Any]] = {"ambiguous": AMBIGUOUS}

    def to_python(self, value: Any) -> Any:
        plain = without_separators(value, self.separated) if isinstance(value, str) else value
        if isinstance(plain, str) and "," in plain:
            raise ValidationError(self.error_messages["ambiguous"], code="ambiguous")
        return super().to_python(plain)


class DecimalNumberField(SeparatedNumber, forms.DecimalField): ...


class FloatNumberField(SeparatedNumber, forms.FloatField): ...


class WholeNumberField(SeparatedNumber, forms.IntegerField):
    separated = SEPARATED_WHOLE
    default_error_messages: ClassVar[dict[str, Any]] = {"ambiguous": NO_WHOLE}


# What people type appears in lists, mails and logs: names and reasons are one line.
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
