"""Number fields of all forms: they take a number as pages write it, with its separators."""

from __future__ import annotations

import re
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
