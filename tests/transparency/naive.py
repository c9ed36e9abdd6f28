"""The definitions of RFC 6962, word by word, and a tree of any size."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from transparency import merkle
from transparency.merkle import Place


def entries_of(size: int) -> list[bytes]:
    return [f"entry {number}".encode() for number in range(size)]


def tree_of(size: int) -> dict[Place, bytes]:
    tiles: dict[Place, bytes] = {}
    merkle.append(tiles, 0, map(merkle.leaf_hash, entries_of(size)))
    return tiles


def head(entries: Sequence[bytes]) -> bytes:
    if not entries:
        return hashlib.sha256(b"").digest()
    if len(entries) == 1:
        return hashlib.sha256(b"\x00" + entries[0]).digest()
    k = split(len(entries))
    return hashlib.sha256(b"\x01" + head(entries[:k]) + head(entries[k:])).digest()


def path(m: int, entries: Sequence[bytes]) -> list[bytes]:
    if len(entries) == 1:
        return []
    k = split(len(entries))
    if m < k:
        return [*path(m, entries[:k]), head(entries[k:])]
    return [*path(m - k, entries[k:]), head(entries[:k])]


def proof(m: int, entries: Sequence[bytes]) -> list[bytes]:
    return subproof(m, entries, b=True)


def subproof(m: int, entries: Sequence[bytes], *, b: bool) -> list[bytes]:
    if m == len(entries):
        return [] if b else [head(entries)]
    k = split(len(entries))
    if m <= k:
        return [*subproof(m, entries[:k], b=b), head(entries[k:])]
    return [*subproof(m - k, entries[k:], b=False), head(entries[:k])]


def split(n: int) -> int:
    """The largest power of two below n."""
    k = 1
    while 2 * k < n:
        k *= 2
    return k
