"""JSON whose numbers never have an exponent: 0.00003 and not 3e-05, which not every reader takes."""

import re
from decimal import Decimal
from typing import Any

import msgspec

# Between these, every encoder writes a number without an exponent.
TINY, HUGE = 1e-5, 1e16
_encode = msgspec.json.Encoder(decimal_format="number").encode

# Searching for a letter first is ten times as fast as searching for the digits before it.
_of_float, _of_decimal = re.compile(rb"e[-+0-9]"), re.compile(rb"E[-+]")

# No byte is read twice: a text matches whole, and a number from its first digit.
_part = re.compile(rb'"(?:[^"\\]++|\\.?)*+"?|(?<![0-9.])-?[0-9.]+[eE][-+]?[0-9]+', re.DOTALL)


def encode(value: Any) -> bytes:
    return spelled_out(_encode(value))


def spelled_out(body: bytes) -> bytes:
    """JSON of msgspec or json with its numbers written in full; texts stay as they are."""
    if _of_float.search(body) or _of_decimal.search(body):
        return _part.sub(_spelled, body)
    return body


def fault_of(error: Exception) -> str:
    """What a reader of JSON found wrong, for a sentence that already calls the JSON invalid."""
    return str(error).removeprefix("JSON is malformed: ")


def number(value: float) -> str:
    text = repr(value)
    return _in_full(text) if "e" in text else text


def _spelled(part: re.Match[bytes]) -> bytes:
    found = part[0]
    return found if found.startswith(b'"') else _in_full(found.decode()).encode()


def _in_full(text: str) -> str:
    full = f"{Decimal(text):f}"
    # A float stays a float: 1e16 must be read like 1e15.
    return f"{full}.0" if "e" in text and "." not in full else full
