"""Keys as text: a lead that says what for, 36 random characters and a checksum of 6; and which keys there
are, as short pieces of their digests, so that nobody asks the database for one that does not exist."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import string
import zlib
from array import array
from bisect import bisect_left

# Of an API key. Other kinds have leads of their own, so that one is never taken for the other.
API_KEY_LEAD = "tw_live_"
BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_LENGTH, CHECKSUM_LENGTH, PUBLIC_LENGTH = 36, 6, 8
_BASE62 = frozenset(BASE62)


def base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(BASE62[digit])
    return "".join(reversed(digits))


def with_checksum(body: str) -> str:
    """Complete a key, so that scanners and typos can be told apart without asking the service."""
    return body + base62(zlib.crc32(body.encode()), CHECKSUM_LENGTH)


def generate_key(lead: str = API_KEY_LEAD) -> str:
    return with_checksum(lead + "".join(secrets.choice(BASE62) for _ in range(RANDOM_LENGTH)))


def derive_key(secret: str, purpose: str) -> str:
    """The same key for the same secret and purpose: the demo keys outlive a restart this way."""
    seed = hmac.digest(secret.encode(), purpose.encode(), "sha256")
    return with_checksum(API_KEY_LEAD + base62(int.from_bytes(seed), RANDOM_LENGTH))


def is_well_formed(key: str, lead: str = API_KEY_LEAD) -> bool:
    return (
        len(key) == len(lead) + RANDOM_LENGTH + CHECKSUM_LENGTH
        and key.startswith(lead)
        and _BASE62.issuperset(key[len(lead) :])
        and key == with_checksum(key[:-CHECKSUM_LENGTH])
    )


def prefix_of(key: str, lead: str = API_KEY_LEAD) -> str:
    """The public part: names a key in lists and commands without opening anything."""
    return key[: len(lead) + PUBLIC_LENGTH]


def digest_of(key: str, pepper: str) -> str:
    return hmac.new(pepper.encode(), key.encode(), hashlib.sha256).hexdigest()


MARK_LENGTH = 10
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
            bucket.insert(place, int.from_bytes(digest[2:MARK_LENGTH]))
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
        value = int.from_bytes(digest[2:MARK_LENGTH])
        place = bisect_left(bucket, value)
        return place, place < len(bucket) and bucket[place] == value


def mark_of(digest: str) -> str:
    """What stands of a digest in the events of its key."""
    return digest[: 2 * MARK_LENGTH]
