"""An endpoint on a local socket that speaks both protocols, well or badly, as a test says."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from news.language import Endpoint
from news.language_models import LanguageModel
from tests.local_http import LocalHttp, read_request, whole_answer
from tests.patience import PATIENCE_S

KEY = "sk-secret-1234"


class Asked(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: Any


Act = Callable[[asyncio.StreamWriter], Awaitable[None]]


def answer(status: int, body: object, **headers: str) -> Act:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def act(writer: asyncio.StreamWriter) -> None:
        writer.write(whole_answer(content, f"{status} So", **headers))
        await writer.drain()

    return act


async def hang(writer: asyncio.StreamWriter) -> None:
    # Asked to end, it ends in order: the streams of Python 3.11 report a cancelled handler as a fault.
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


async def cut(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


def says(protocol: str, content: str) -> Act:
    """What the model says, in the envelope of its protocol; `content` is JSON, if the model is well."""
    if protocol == "openai":
        return answer(200, {"choices": [{"message": {"role": "assistant", "content": content}}]})
    envelope = (
        '{"content":[{"type":"text","text":"So."},{"type":"tool_use","id":"1","name":"answer","input":%s}]}'
    )
    return answer(200, (envelope % content).encode())


class LanguageServer(LocalHttp):
    """Takes its acts in order, and the last one again and again."""

    def __init__(self, *acts: Act) -> None:
        super().__init__()
        self.acts = list(acts)
        self.asked: list[Asked] = []

    def model(
        self, protocol: str = "openai", clock: Callable[[], float] = lambda: 0.0, **facts: Any
    ) -> LanguageModel:
        defaults = {"model": "words-1", "key": KEY, "timeout_s": PATIENCE_S, "daily_budget": 100}
        endpoint = Endpoint(protocol, f"{self.url}/v1", **(defaults | facts))  # type: ignore[arg-type]
        return LanguageModel(endpoint, clock)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        content = json.loads(request.body) if request.body else None
        self.asked.append(Asked(request.method, request.target, request.headers, content))
        act = self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]
        await act(writer)
