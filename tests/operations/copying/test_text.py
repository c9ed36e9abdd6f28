"""One text for each value, whichever database it comes from."""

from __future__ import annotations

import json
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from operations.copying.text import (
    NONE,
    digits_of,
    escaped,
    fields_of,
    plain_decimal,
    plain_json,
    plain_moment,
)


@given(st.lists(st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=1))
def test_what_is_written_is_read_again(fields: list[str | None]) -> None:
    line = "\t".join(NONE if field is None else escaped(field) for field in fields)
    assert "\n" not in line
    assert fields_of(line) == fields


@given(st.decimals(-(10**7), 10**7, places=8, allow_nan=False))
def test_a_decimal_comes_back_from_a_binary_fraction(value: Decimal) -> None:
    assert Decimal(plain_decimal(float(value), 8) or "") == value


def test_a_decimal_has_all_its_places_and_no_signed_zero() -> None:
    assert plain_decimal(1.1, 8) == "1.10000000"
    assert plain_decimal(-0.0, 1) == "0.0"
    assert plain_decimal(None, 8) is None


def test_digits_that_count_are_counted() -> None:
    assert digits_of("-1234.50000000") == 5
    assert digits_of("0.00000001") == 1
    assert digits_of("123456789.12345678") == 17


def test_json_is_the_same_however_its_numbers_and_keys_were_written() -> None:
    assert plain_json('{"b": 1e22, "a": 1e-7}') == plain_json('{"a":0.0000001,"b":10000000000000000000000}')
    assert json.loads(plain_json('[1700000000000000001, 1.0, true, "ü"]')) == [
        1700000000000000001,
        1.0,
        True,
        "ü",
    ]


def test_a_moment_has_six_places_however_sqlite_has_it() -> None:
    assert plain_moment("2026-11-18 12:00:00") == "2026-11-18 12:00:00.000000"
    assert plain_moment("2026-11-18 12:00:00.5") == "2026-11-18 12:00:00.500000"
    assert plain_moment("2026-11-18T12:00:00.000001+00:00") == "2026-11-18 12:00:00.000001"
