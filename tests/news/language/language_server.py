"""An endpoint on a local socket that speaks both protocols, well or badly, as a test says."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, NamedTuple, Self

from news.language.endpoint import Endpoint
from news.language_models import LanguageModel

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
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status} So\r\nContent-Length: {len(content)}\r\nConnection: close\r\n{more}\r\n"
        writer.write(head.encode() + content)
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


class LanguageServer:
    """Takes its acts in order, and the last one again and again."""

    def __init__(self, *acts: Act) -> None:
        self.acts = list(acts)
        self.asked: list[Asked] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def model(
        self, protocol: str = "openai", clock: Callable[[], float] = lambda: 0.0, **facts: Any
    ) -> LanguageModel:
        defaults = {"model": "words-1", "key": KEY, "timeout_s": 5.0, "daily_budget": 100}
        endpoint = Endpoint(protocol, f"{self.url}/v1", **(defaults | facts))  # type: ignore[arg-type]
        return LanguageModel(endpoint, clock)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            self.asked.append(await read(reader))
            act = self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]
            await act(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            # The client went, as clients do.
            pass
        finally:
            self._tasks.discard(task)
            writer.close()


async def read(reader: asyncio.StreamReader) -> Asked:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    content = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, path, headers, json.loads(content) if content else None)
