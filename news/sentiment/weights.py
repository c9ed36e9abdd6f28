"""The trained file: a line of JSON that describes it, then three packed tables for each group of features.

A feature's place in the tables of its group is a checksum of its text. There stand its rarity (in sixteenths)
and, multiplied by it, its weights for bullish and for bearish, both against neutral, as signed bytes."""

from __future__ import annotations

import hashlib
import zlib
from array import array
from pathlib import Path

import msgspec

GROUPS = ("terms", "pieces", "signs")
RARITY_STEPS = 16


class BadModel(Exception):
    """The file is not a model; the sentence says why."""


class GroupFacts(msgspec.Struct, frozen=True):
    size: int
    """Of its tables; a power of two."""
    scale: float
    """What one step of a weight is worth."""
    shares: tuple[float, float]
    """Of the group in titles on companies, and on the other categories."""


class ModelFacts(msgspec.Struct, frozen=True):
    name: str
    version: int
    bias: tuple[float, float]
    """Of bullish and bearish, against neutral."""
    groups: dict[str, GroupFacts]
    trained_on: dict[str, int]
    made_of: dict[str, str]
    """Checksums of the files that it depends on: with other ones it has to be trained anew."""

    @property
    def identifier(self) -> str:
        return f"{self.name}-{self.version}"


class Tables(msgspec.Struct, frozen=True):
    rarity: bytes
    bullish: array[int]
    bearish: array[int]

    def packed(self) -> bytes:
        return self.rarity + self.bullish.tobytes() + self.bearish.tobytes()


class Weights(msgspec.Struct, frozen=True):
    facts: ModelFacts
    tables: dict[str, Tables]
    checksum: str = ""

    def as_bytes(self) -> bytes:
        packed = b"".join(self.tables[group].packed() for group in GROUPS)
        return msgspec.json.encode(self.facts) + b"\n" + zlib.compress(packed, 9)


def read_weights(path: Path) -> Weights:
    whole = path.read_bytes()
    head, _, packed = whole.partition(b"\n")
    try:
        facts = msgspec.json.decode(head, type=ModelFacts)
        content = zlib.decompress(packed)
        return Weights(facts, unpacked(facts, content), hashlib.sha256(whole).hexdigest()[:12])
    except (ValueError, KeyError, zlib.error) as error:
        raise BadModel(
            f"{path} is not a trained model: {error}. Take it from the repository again."
        ) from None


def unpacked(facts: ModelFacts, content: bytes) -> dict[str, Tables]:
    tables = {}
    start = 0
    for group in GROUPS:
        size = facts.groups[group].size
        parts = [content[start + part * size : start + (part + 1) * size] for part in range(3)]
        tables[group] = Tables(parts[0], array("b", parts[1]), array("b", parts[2]))
        start += 3 * size
    if len(content) != start:
        raise ValueError(f"its tables have {len(content)} bytes, not {start}")
    return tables


def place(feature: str, size: int) -> int:
    return zlib.crc32(feature.encode("utf-8", "surrogatepass")) & (size - 1)
