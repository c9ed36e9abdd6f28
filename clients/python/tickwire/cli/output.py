"""How the commands write: numbers in full, and each line at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal


def as_json(frame: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{json.dumps(name)}: {plain(value)}" for name, value in frame.items()) + "}"


def plain(value: object) -> str:
    """As JSON, with numbers in full: 0.00003 and not 3e-05."""
    text = json.dumps(value)
    return f"{Decimal(text):f}" if isinstance(value, float) and "e" in text else text


def say(line: str) -> None:
    # At once, also into a pipe: who follows wants to see it now.
    print(line, flush=True)
