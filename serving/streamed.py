"""A body that is made while it is sent, and no further once nobody is there to take it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from core.contract.answers import Answer
from core.contract.errors import answer_exception


async def send_streamed(
    answer: Answer, streamed: AsyncGenerator[bytes, None], receive: Any, send: Any
) -> None:
    """If making it fails, the body has no end: the server breaks the connection off, and the client sees that
    it is not whole."""
    leaving = asyncio.ensure_future(_leaves(receive))
    try:
        async with aclosing(streamed) as chunks:
            async for chunk in chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                # A server takes what is sent to nobody without a word.
                if leaving.done():
                    return
    except Exception as error:  # noqa: BLE001 - as before a body: every fault is told, and only a bug as one
        answer_exception(error, answer.headers.get("X-Request-Id", ""))
    else:
        await send({"type": "http.response.body", "body": b""})
    finally:
        leaving.cancel()


async def _leaves(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
