"""Counting what is asked of the database: in the block itself, and for HTTP requests that begin in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.db.backends.utils import CursorWrapper
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

# Tasks take their context from who starts them, and so do our threads (`in_thread`, and scoring); what the
# service does by itself began elsewhere.
COUNTED: ContextVar[list[str] | None] = ContextVar("counted", default=None)
"""For which block; what a request of an earlier one has started is none of this one's."""


@contextmanager
def count_queries() -> Iterator[list[str]]:
    """The statements of all threads that work for the block or for a request."""
    asked: list[str] = []
    execute, answer = CursorWrapper.execute, RequestResponseCycle.run_asgi

    def counted(self: CursorWrapper, sql: Any, params: Any = None) -> Any:
        if COUNTED.get() is asked:
            asked.append(str(sql))
        return execute(self, sql, params)

    async def answered(self: RequestResponseCycle, app: Any) -> None:
        COUNTED.set(asked)
        await answer(self, app)

    token = COUNTED.set(asked)
    CursorWrapper.execute = counted  # type: ignore[method-assign]
    RequestResponseCycle.run_asgi = answered  # type: ignore[method-assign]
    try:
        yield asked
    finally:
        CursorWrapper.execute = execute  # type: ignore[method-assign]
        RequestResponseCycle.run_asgi = answer  # type: ignore[method-assign]
        COUNTED.reset(token)


@contextmanager
def around_statements(act: Callable[[str, Callable[[], Any]], Any]) -> Iterator[None]:
    """Let `act` run each statement of every thread, or not."""
    execute: Callable[..., Any] = CursorWrapper.execute

    def acted(self: CursorWrapper, sql: str, params: Any = None) -> Any:
        return act(sql, lambda: execute(self, sql, params))

    CursorWrapper.execute = acted  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        CursorWrapper.execute = execute  # type: ignore[method-assign]
