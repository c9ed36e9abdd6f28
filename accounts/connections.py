"""What a connection is told of its caller, where the server put something to tell into the ASGI scope."""

from __future__ import annotations

from typing import Any

EXTENSION = "tickwire.connection"


def note_known(scope: dict[str, Any]) -> None:
    """A valid key came over it: it is not among the first to go when connections become scarce."""
    extensions = scope.get("extensions")
    if extensions and (connection := extensions.get(EXTENSION)) is not None:
        connection.is_known = True
