"""Numbers as people type and copy them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError

from accounts.form_fields import AMBIGUOUS, NO_WHOLE, DecimalNumberField, FloatNumberField, WholeNumberField


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("4090.5", "4090.5"), ("4,090.50", "4090.50"), (" 1,234,567 ", "1234567")),
        *(("1,234,567.8", "1234567.8"), ("\N{MINUS SIGN}1,000.5", "-1000.5"), ("-0.5", "-0.5")),
    ],
)
def test_numbers_may_have_separators(text: str, number: str) -> None:
    assert DecimalNumberField().clean(text) == Decimal(number)
    assert FloatNumberField().clean(text) == float(number)
    for whole, count in (("4,090", 4090), ("1,234,567", 1234567), ("12", 12)):
        assert WholeNumberField().clean(whole) == count


@pytest.mark.parametrize("text", ["4,090", "0,4", "40,90.5", "4,0905.1", "4.090,5", "1,2,3"])
def test_a_comma_that_may_mean_two_things_is_refused_in_words(text: str) -> None:
    for field in (DecimalNumberField(), FloatNumberField()):
        with pytest.raises(ValidationError, match=AMBIGUOUS):
            field.clean(text)
    for none in ("40,90", "4,090.5", "1,0"):
        with pytest.raises(ValidationError, match=NO_WHOLE):
            WholeNumberField().clean(none)
