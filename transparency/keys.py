"""Keys of signed notes: Ed25519 over a text, and the cosignatures of witnesses, which also say when."""

from __future__ import annotations

import base64
import hashlib
import unicodedata
from enum import IntEnum
from typing import NamedTuple, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

KEY_BYTES, TIME_BYTES = 32, 8
PRIVATE = "PRIVATE+KEY+"


class KeyRefused(ValueError):
    """A text is not a key; the sentence says why."""


class KeyType(IntEnum):
    ED25519 = 1
    COSIGNATURE = 4
    """Of a witness. Its signature begins with the seconds since 1970."""


class VerifierKey(NamedTuple):
    name: str
    type: KeyType
    public: bytes

    @classmethod
    def read(cls, text: str) -> Self:
        # Base64 may have a `+` of its own.
        name, _, rest = text.partition("+")
        key_id, _, encoded = rest.partition("+")
        key = cls(name_of_key(name), *_typed(encoded))
        if key.id.hex() != key_id.lower():
            raise KeyRefused(f"The key of {name} does not have the ID {key_id!r}.")
        return key

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}+{_encoded(self.type, self.public)}"

    @property
    def id(self) -> bytes:
        return hashlib.sha256(self.name.encode() + b"\n" + bytes((self.type,)) + self.public).digest()[:4]

    def verifies(self, text: str, signature: bytes) -> bool:
        message = text.encode()
        if self.type is KeyType.COSIGNATURE:
            message, signature = _cosigned(text, signature[:TIME_BYTES]), signature[TIME_BYTES:]
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except InvalidSignature:
            return False
        return True


class SigningKey(NamedTuple):
    name: str
    type: KeyType
    seed: bytes

    @classmethod
    def make(cls, name: str, type_: KeyType) -> Self:
        return cls(name_of_key(name), type_, Ed25519PrivateKey.generate().private_bytes_raw())

    @classmethod
    def read(cls, text: str) -> Self:
        """As Go's note package writes it, so that either can go on with the other's key."""
        name, _, rest = text.strip().removeprefix(PRIVATE).partition("+")
        key_id, _, encoded = rest.partition("+")
        key = cls(name_of_key(name), *_typed(encoded))
        if not text.startswith(PRIVATE) or key.verifier.id.hex() != key_id.lower():
            raise KeyRefused(f"This is no private key of {name}.")
        return key

    def secret_text(self) -> str:
        return f"{PRIVATE}{self.name}+{self.verifier.id.hex()}+{_encoded(self.type, self.seed)}"

    def __repr__(self) -> str:
        """Neither a log nor a traceback shows the seed."""
        return f"<key of {self.name}>"

    @property
    def verifier(self) -> VerifierKey:
        public = Ed25519PrivateKey.from_private_bytes(self.seed).public_key()
        return VerifierKey(self.name, self.type, public.public_bytes_raw())

    def sign(self, text: str, now_s: int = 0) -> bytes:
        """Only a cosignature says when."""
        message, before = text.encode(), b""
        if self.type is KeyType.COSIGNATURE:
            before = now_s.to_bytes(TIME_BYTES, "big")
            message = _cosigned(text, before)
        return before + Ed25519PrivateKey.from_private_bytes(self.seed).sign(message)


def cosigned_at_s(signature: bytes) -> int:
    """When a witness saw what it signed."""
    return int.from_bytes(signature[:TIME_BYTES], "big")


def name_of_key(name: str) -> str:
    """Raises KeyRefused for what cannot stand in a signature line."""
    if not is_key_name(name):
        raise KeyRefused(f"{name!r} cannot name a key: it must not be empty or have spaces or +.")
    return name


def is_key_name(name: str) -> bool:
    return bool(name) and not any(
        letter == "+" or letter.isspace() or unicodedata.category(letter) in ("Cc", "Cs") for letter in name
    )


def _cosigned(text: str, time: bytes) -> bytes:
    return f"cosignature/v1\ntime {int.from_bytes(time, 'big')}\n{text}".encode()


def _encoded(type_: KeyType, key: bytes) -> str:
    return base64.b64encode(bytes((type_,)) + key).decode()


def _typed(encoded: str) -> tuple[KeyType, bytes]:
    try:
        raw = base64.b64decode(encoded, validate=True)
        type_ = KeyType(raw[0])
    except (ValueError, IndexError):
        raise KeyRefused("The key is not Base64, or of a type that is not known here.") from None
    if len(raw) != 1 + KEY_BYTES:
        raise KeyRefused(f"A key has {KEY_BYTES} bytes, this one has {len(raw) - 1}.")
    return type_, raw[1:]
