from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.plain_json import encode, fault_of, number, spelled_out

EXPONENT = re.compile(rb"[0-9][eE][-+0-9]")


@pytest.mark.parametrize("value", [3e-05, -3e-05, 5e-324, 1e16, 1.2345e17, -1e22, 1.7e308, 0.0001, 1e15, 0.0])
def test_number_is_written_in_full_and_is_the_same_number(value: float) -> None:
    body = encode({"price": value})
    assert not EXPONENT.search(body)
    assert json.loads(body)["price"] == json.loads(number(value)) == value
    assert "e" not in number(value)


def test_small_prices_read_as_people_write_them() -> None:
    assert encode([3e-05, 1.5e-07]) == b"[0.00003,0.00000015]"
    assert number(3e-05) == "0.00003"
    assert spelled_out(json.dumps([3e-05, 1e16]).encode()) == b"[0.00003, 10000000000000000.0]"
    assert spelled_out(json.dumps([1e22]).encode()) == b"[10000000000000000000000.0]"
    assert encode([Decimal("3E-7"), Decimal("1E+2")]) == b"[0.0000003,100]"


def test_fault_is_not_called_malformed_twice() -> None:
    with pytest.raises(msgspec.DecodeError) as raised:
        msgspec.json.decode(b"nonsense")
    assert fault_of(raised.value) == "invalid character (byte 4)"


def test_what_stands_in_texts_stays() -> None:
    told = {"id": "3e-05", "name": 'a "1e16" \\', "E-7": 1e-07, "é": "12E+3"}
    assert encode(told) == '{"id":"3e-05","name":"a \\"1e16\\" \\\\","E-7":0.0000001,"é":"12E+3"}'.encode()


floats = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | floats | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(values)
def test_any_value_stays_what_it_is(value: Any) -> None:
    body = encode(value)
    assert json.loads(body) == value
    assert not EXPONENT.search(re.sub(rb'"(?:[^"\\]|\\.)*"', b'""', body))
