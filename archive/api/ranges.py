"""Pure: which part of a body is asked for, and whether the client has it already (RFC 9110)."""

import re
from typing import NamedTuple

# More digits than any size has, and few enough for int().
MOST_DIGITS = 18
ONE_RANGE = re.compile(r"bytes=(\d*)-(\d*)", re.ASCII | re.IGNORECASE)
TAG = re.compile(r'(?:W/)?("[^"]*")')


class Part(NamedTuple):
    """From `start` up to `stop`, which is excluded."""

    start: int
    stop: int


class Unsatisfiable(ValueError):
    """Nothing of the body is in that range."""


def part_of(asked: str | None, size: int) -> Part | None:
    """None stands for the whole: nothing was asked for, several ranges were, or what cannot be read."""
    match = ONE_RANGE.fullmatch((asked or "").strip())
    if match is None or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if not first:
        start, stop = max(0, size - number(last)), size
    elif last and number(last) < number(first):
        return None
    else:
        start, stop = number(first), min(number(last) + 1, size) if last else size
    if start >= stop:
        raise Unsatisfiable
    return Part(start, stop)


def number(digits: str) -> int:
    digits = digits.lstrip("0")
    return int(digits or 0) if len(digits) <= MOST_DIGITS else 10**MOST_DIGITS


def has_already(if_none_match: str | None, tag: str) -> bool:
    if if_none_match is None:
        return False
    return if_none_match.strip() == "*" or tag in TAG.findall(if_none_match)


def may_have_part(if_range: str | None, tag: str) -> bool:
    """A part of another version would not fit to the one that the client has; a date names none here."""
    return if_range is None or if_range.strip() == tag
