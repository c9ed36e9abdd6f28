"""Keys as text: a prefix for the kind, 36 random characters and a checksum of 6."""

import hashlib
import hmac
import secrets
import string
import zlib

# API keys begin with this. Other kinds have leads of their own, so that one is never taken for another.
API_KEY_LEAD = "tw_live_"
BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_LENGTH, CHECKSUM_LENGTH, PUBLIC_LENGTH = 36, 6, 8
_BASE62 = frozenset(BASE62)

# This many bytes of a digest tell one key from all others.
MARK_BYTES = 10


def base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(BASE62[digit])
    return "".join(reversed(digits))


def with_checksum(body: str) -> str:
    """Complete a key, so that a typo can be distinguished from a key without asking the service."""
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


def shown_prefix(sent: str, lead: str = API_KEY_LEAD) -> str:
    """The part of a sent key that may be logged: nothing if it is not a key, because it may be a password."""
    return (
        prefix_of(sent, lead) if sent.startswith(lead) and len(sent) > 2 * len(prefix_of(sent, lead)) else ""
    )


def digest_of(key: str, pepper: str) -> str:
    if not pepper:
        raise ValueError(
            "No key can be made without a pepper: set KEY_PEPPER, or let the command make a secret."
        )
    return hmac.new(pepper.encode(), key.encode(), hashlib.sha256).hexdigest()
