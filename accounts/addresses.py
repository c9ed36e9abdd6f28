"""From where somebody calls. A trusted proxy's word is in the scope already: the server has put it there."""

from __future__ import annotations

from typing import Any


def address_of(scope: dict[str, Any]) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""
