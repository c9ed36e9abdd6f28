"""The Merkle tree of RFC 6962: roots, and proofs that an entry is in it and that one tree extends another.

The hashes of the leaves are kept in tiles of 256. A full tile is itself one hash of the tiles a level above,
so that any complete subtree is found within one tile, and a tree that grows changes only the last tile of
each level."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import NamedTuple

HASH_BYTES = 32
TILE_LEVELS = 8
TILE_WIDTH = 1 << TILE_LEVELS
EMPTY_ROOT = hashlib.sha256().digest()


class Place(NamedTuple):
    """Of a tile: on level 0 its hashes are leaves, on level 1 each stands for a full tile of level 0."""

    level: int
    number: int


Tiles = Mapping[Place, bytes]
"""Hashes one after the other; the last tile of a level may have fewer than 256."""


def leaf_hash(entry: bytes) -> bytes:
    return hashlib.sha256(b"\0" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


def append(tiles: MutableMapping[Place, bytes], size: int, leaves: Iterable[bytes]) -> dict[Place, bytes]:
    """The tiles that adding hashes of leaves changes, in `tiles` as well. It reads the last tile of each
    level."""
    changed: dict[Place, bytes] = {}
    level, added = 0, list(leaves)
    while added:
        full = []
        number, filled = divmod(size, TILE_WIDTH)
        before = tiles[Place(level, number)][: filled * HASH_BYTES] if filled else b""
        hashes = before + b"".join(added)
        tile_bytes = TILE_WIDTH * HASH_BYTES
        for start in range(0, len(hashes), tile_bytes):
            tile = hashes[start : start + tile_bytes]
            changed[Place(level, number)] = tile
            if len(tile) == tile_bytes:
                full.append(_combined(tile))
            number += 1
        level, size, added = level + 1, size // TILE_WIDTH, full
    tiles.update(changed)
    return changed


class Frontier:
    """The root of a tree that grows leaf by leaf, without the rest of the tree."""

    def __init__(self) -> None:
        self.size = 0
        self._complete: list[bytes] = []
        """The roots of its complete subtrees, the largest first."""

    def add(self, leaf: bytes) -> None:
        merged, size = leaf, self.size
        while size % 2:
            merged, size = node_hash(self._complete.pop(), merged), size // 2
        self._complete.append(merged)
        self.size += 1

    def root(self) -> bytes:
        return _joined(self._complete) if self._complete else EMPTY_ROOT


def root(tiles: Tiles, size: int) -> bytes:
    return _range_hash(tiles, 0, size) if size else EMPTY_ROOT


def inclusion_proof(tiles: Tiles, index: int, size: int) -> list[bytes]:
    """That the leaf with this index is in the tree of this size (RFC 6962, 2.1.1)."""
    proof, low, high = [], 0, size
    while high - low > 1:
        middle = low + largest_power_below(high - low)
        if index < middle:
            proof.append(_range_hash(tiles, middle, high))
            high = middle
        else:
            proof.append(_range_hash(tiles, low, middle))
            low = middle
    return proof[::-1]


def consistency_proof(tiles: Tiles, old: int, size: int) -> list[bytes]:
    """That the tree of this size extends the old one (RFC 6962, 2.1.2)."""
    if not old:
        return []
    proof, low, high = [], 0, size
    while high != old:
        middle = low + largest_power_below(high - low)
        if old <= middle:
            proof.append(_range_hash(tiles, middle, high))
            high = middle
        else:
            proof.append(_range_hash(tiles, low, middle))
            low = middle
    # The verifier has the old root, which is this one where the old tree is a complete subtree.
    if low:
        proof.append(_range_hash(tiles, low, high))
    return proof[::-1]


def tiles_for(size: int, *leaves: int) -> set[Place]:
    """Among these are all that `append` and `root` read, and proofs about these leaves, or about trees that
    end with them."""
    found = set[Place]()
    level = 0
    while size:
        found |= {Place(level, leaf // TILE_WIDTH) for leaf in (*leaves, size - 1)}
        leaves = tuple(leaf // TILE_WIDTH for leaf in leaves)
        level, size = level + 1, size // TILE_WIDTH
    return found


def proves_consistency(old: int, old_root: bytes, size: int, new_root: bytes, proof: Iterable[bytes]) -> bool:
    """Every tree extends the empty one, and nothing has to be proved for it."""
    given = iter(proof)
    if old == size or not old:
        is_same = old_root == (new_root if old else EMPTY_ROOT)
        return 0 <= old <= size and is_same and next(given, None) is None
    if not 0 < old < size:
        return False
    number, last = old - 1, size - 1
    while number % 2:
        number, last = number >> 1, last >> 1
    first = next(given, b"") if number else old_root
    small, large = first, first
    for each in given:
        if not last:
            return False
        if number % 2 or number == last:
            small, large = node_hash(each, small), node_hash(each, large)
            while number and not number % 2:
                number, last = number >> 1, last >> 1
        else:
            large = node_hash(large, each)
        number, last = number >> 1, last >> 1
    return not last and small == old_root and large == new_root


def largest_power_below(count: int) -> int:
    """The left part of `count` leaves."""
    return 1 << (count - 1).bit_length() - 1


def _range_hash(tiles: Tiles, low: int, high: int) -> bytes:
    """Of the leaves from `low`, a multiple of the largest power of two in `high - low`, up to `high`."""
    return _joined(list(_complete_subtrees(tiles, low, high)))


def _joined(subtrees: list[bytes]) -> bytes:
    *others, found = subtrees
    for each in reversed(others):
        found = node_hash(each, found)
    return found


def _complete_subtrees(tiles: Tiles, low: int, high: int) -> Iterator[bytes]:
    while low < high:
        height = (high - low).bit_length() - 1
        level, inside = divmod(height, TILE_LEVELS)
        number, first = divmod(low >> level * TILE_LEVELS, TILE_WIDTH)
        start, end = first * HASH_BYTES, (first + (1 << inside)) * HASH_BYTES
        yield _combined(tiles[Place(level, number)][start:end])
        low += 1 << height


def _combined(hashes: bytes) -> bytes:
    """The one hash of a power of two of them."""
    while len(hashes) > HASH_BYTES:
        pair = 2 * HASH_BYTES
        hashes = b"".join(
            hashlib.sha256(b"\1" + hashes[start : start + pair]).digest()
            for start in range(0, len(hashes), pair)
        )
    return hashes
