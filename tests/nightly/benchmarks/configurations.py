"""Configurations of servers that are compared: words in capitals stand for what each run decides."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def fill(template: Path, directory: Path, words: Mapping[str, object]) -> Path:
    """Returns the file of the same name in that directory."""
    text = template.read_text()
    for word, value in words.items():
        text = text.replace(word, str(value))
    filled = directory / template.name
    filled.write_text(text)
    return filled
