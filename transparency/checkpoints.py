"""Checkpoints: what a log says of its tree, as the text of a signed note."""

from __future__ import annotations

import base64
import re
from typing import NamedTuple

from .keys import is_key_name
from .merkle import HASH_BYTES

SIZE = re.compile(r"0|[1-9][0-9]{0,17}")
"""What a column of 64 bits holds, and no log ever reaches."""


class CheckpointRefused(ValueError):
    """The text is no checkpoint; the sentence says why."""


class Checkpoint(NamedTuple):
    origin: str
    size: int
    root: bytes

    @classmethod
    def read(cls, text: str) -> Checkpoint:
        """Other logs may add lines, which are signed too and mean nothing here."""
        origin, size, root, *_ = *text.split("\n"), "", ""
        if not is_key_name(origin):
            raise CheckpointRefused("The first line of a checkpoint is the origin of its log.")
        if not SIZE.fullmatch(size):
            raise CheckpointRefused("The second line of a checkpoint is the size of its tree.")
        return cls(origin, int(size), read_hash(root))

    def __str__(self) -> str:
        return f"{self.origin}\n{self.size}\n{write_hash(self.root)}\n"


def read_hash(text: str) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        raw = b""
    if len(raw) != HASH_BYTES:
        raise CheckpointRefused(f"This is no hash of {HASH_BYTES} bytes in Base64: {text[:100]!r}")
    return raw


def write_hash(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
