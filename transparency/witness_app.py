"""The HTTP side of the witness: `POST /add-checkpoint`, and its key at `/`."""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import Any

from .offers import ADD, SIZE_TYPE, OfferRefused
from .witness import Witness

PLAIN = "text/plain; charset=utf-8"
MOST_BYTES = 64 * 1024


class WitnessApp:
    def __init__(self, witness: Witness) -> None:
        self._witness = witness

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        status, text = await self._answer(scope, receive)
        kind = SIZE_TYPE if status == HTTPStatus.CONFLICT else PLAIN
        headers = [(b"content-type", kind.encode()), (b"content-length", str(len(text.encode())).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text.encode()})

    async def _answer(self, scope: dict[str, Any], receive: Any) -> tuple[HTTPStatus, str]:
        if scope["path"] == "/" and scope["method"] == "GET":
            return HTTPStatus.OK, f"{self._witness.key.verifier}\n"
        if scope["path"] != ADD:
            return HTTPStatus.NOT_FOUND, f"Checkpoints are offered at {ADD}.\n"
        if scope["method"] != "POST":
            return HTTPStatus.METHOD_NOT_ALLOWED, f"Checkpoints are sent to {ADD} with POST.\n"
        body = b""
        is_whole = False
        while not is_whole:
            message = await receive()
            body += message.get("body", b"")
            is_whole = not message.get("more_body", False)
            if len(body) > MOST_BYTES:
                return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"At most {MOST_BYTES:,} bytes.\n"
        try:
            return HTTPStatus.OK, await asyncio.to_thread(
                self._witness.add_checkpoint, body, int(time.time())
            )
        except OfferRefused as refused:
            return refused.status, str(refused)
