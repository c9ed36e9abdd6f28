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


def is_old(scope: dict[str, Any]) -> bool:
    """HTTP/1.0 knows no chunks, and its clients would take their marks for content."""
    return bool(scope.get("http_version") == "1.0")


async def made_whole(answer: Answer, streamed: AsyncGenerator[bytes, None]) -> Answer:
    """The body first, so that its length is known. What is made while it is sent is bounded."""
    try:
        async with aclosing(streamed) as chunks:
            body = [chunk async for chunk in chunks]
    except Exception as error:  # noqa: BLE001 - as above; nothing has been sent yet, so it is an answer
        return answer_exception(error, answer.headers.get("X-Request-Id", ""))
    return Answer(tuple(body), answer.headers, answer.status, media_type=answer.media_type)


async def _leaves(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
