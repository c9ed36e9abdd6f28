"""Cursors: where the next page of an answer begins, signed. The server keeps nothing of them, so they outlast
it."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec
from django.core.signing import BadSignature, Signer

from core.plain_json import encode

from .errors import InvalidCursor

# Longer than any that is given.
LONGEST = 500


class Cursors:
    """Those of one path. `asked` is what the request asked for, without its cursor and its limit."""

    def __init__(self, name: str) -> None:
        self._salt = f"cursor.{name}"

    def seal(self, asked: Sequence[Any], position: Any) -> str:
        """`position` is plain: numbers, texts, lists of them."""
        text = urlsafe_b64encode(encode((fingerprint(asked), position))).decode().rstrip("=")
        return self._signer().sign(text)

    def open(self, cursor: str, asked: Sequence[Any]) -> Any:
        """The position, or InvalidCursor."""
        try:
            if len(cursor) > LONGEST:
                raise BadSignature
            text = self._signer().unsign(cursor)
        except BadSignature:
            raise InvalidCursor(field="cursor") from None
        of, position = msgspec.json.decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if of != fingerprint(asked):
            raise InvalidCursor(field="cursor")
        return position

    def _signer(self) -> Signer:
        # Made each time: a secret may be replaced while the process runs, and its fallbacks stay good.
        return Signer(salt=self._salt, sep=".")


def fingerprint(asked: Sequence[Any]) -> str:
    return sha256(encode(asked)).hexdigest()[:16]
