from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.hashers import MD5PasswordHasher


class CountedHasher(MD5PasswordHasher):
    """Knows how often a password was hashed, which is what takes the time of a real one."""

    hashed: ClassVar[int] = 0

    def encode(self, password: str, salt: str) -> str:
        CountedHasher.hashed += 1
        encoded: str = super().encode(password, salt)
        return encoded
