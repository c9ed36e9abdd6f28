"""Which keys there are, as short pieces of their digests: small enough for millions, so that nobody asks
the database for a key that does not exist. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left

LENGTH = 10
"""Bytes of a digest: two name its bucket, eight lie in it."""


class Marks:
    def __init__(self) -> None:
        self._buckets: dict[bytes, array[int]] = {}
        self._number = 0

    def __len__(self) -> int:
        return self._number

    def __contains__(self, digest: bytes) -> bool:
        bucket = self._buckets.get(digest[:2])
        return bucket is not None and self._place(bucket, digest)[1]

    def add(self, digest: bytes) -> None:
        bucket = self._buckets.setdefault(digest[:2], array("Q"))
        place, is_there = self._place(bucket, digest)
        if not is_there:
            bucket.insert(place, int.from_bytes(digest[2:LENGTH]))
            self._number += 1

    def discard(self, digest: bytes) -> None:
        bucket = self._buckets.get(digest[:2])
        if bucket is None:
            return
        place, is_there = self._place(bucket, digest)
        if is_there:
            del bucket[place]
            self._number -= 1

    @staticmethod
    def _place(bucket: array[int], digest: bytes) -> tuple[int, bool]:
        value = int.from_bytes(digest[2:LENGTH])
        place = bisect_left(bucket, value)
        return place, place < len(bucket) and bucket[place] == value


def mark_of(digest: str) -> str:
    """What stands of a digest in the events of its key."""
    return digest[: 2 * LENGTH]
