"""Figures against what was expected: `0.7% vs 0.3% expected`, `51.8, above 51.2 forecast`."""

from __future__ import annotations

import re

# From its first digit: begun at each one, a long number would take time without an end.
NUMBER = r"([-+]?)[$£€¥]?(?<!\d)(?<!\d,)(\d[\d,]*(?:\.\d+)?) ?(%|k\b|m\b|mln|bn?\b|million|billion|thousand)?"
BETWEEN, BEFORE = r"[^\d+-]{0,24}?", r"[^\d+-]{0,16}?"
AGAINST = re.compile(rf"{NUMBER}{BETWEEN}\b(?:vs|versus|against|est|exp|forecast)\b{BEFORE}{NUMBER}")
COMPARED = re.compile(rf"{NUMBER}{BETWEEN}\b(?:above|below|from)\b{BEFORE}{NUMBER}")
EXPECTATION = re.compile(r"\b(?:estimate|forecast|expected|consensus)")
SHRINKS = re.compile(
    r"\b(?:contract|declin|fall|fell|drop|shr[aiu]nk|slump|tumbl|plung|los[et])\w*(?: by)? *$"
)
WRITTEN_OUT = 1000
SIZES = {
    "k": 1e3,
    "thousand": 1e3,
    "m": 1e6,
    "mln": 1e6,
    "million": 1e6,
    "b": 1e9,
    "bn": 1e9,
    "billion": 1e9,
}


def surprise(text: str) -> str:
    """`beyond`, `short` or `level` where a plain text compares two figures; else empty."""
    found = AGAINST.search(text)
    if found is None and EXPECTATION.search(text):
        found = COMPARED.search(text)
    if found is None:
        return ""
    sign, actual, size, other_sign, expected, other_size = found.groups()
    # "Contracts 0.2% vs 0.1% expected": both are losses, though neither has a sign.
    if not sign and SHRINKS.search(text[: found.start()]):
        sign = "-"
        other_sign = other_sign or "-"
    difference = valued(sign, actual, size, other_size) - valued(other_sign, expected, other_size, size)
    if not difference:
        return "level"
    return "beyond" if difference > 0 else "short"


def valued(sign: str, digits: str, size: str | None, other_size: str | None) -> float:
    value = float(digits.replace(",", ""))
    # "8.1 vs 7.7 million" means two millions; 22,000 is as large as it looks.
    value *= SIZES.get(size or (other_size if value < WRITTEN_OUT else "") or "", 1.0)
    return -value if sign == "-" else value
