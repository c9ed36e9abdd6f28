"""How Client and AsyncClient share their methods: each describes a request, which the client sends."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import dataclass
from functools import wraps
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from .answers import Value

if TYPE_CHECKING:
    from .asynchronous import AsyncClient
    from .session import Session
    from .synchronous import Client

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Asked(Generic[T_co]):
    """A request; T_co is its answer."""

    path: str
    parameters: dict[str, Value]


def asked(path: str, **parameters: Value) -> Asked[Any]:
    return Asked(path, parameters)


class Call(Generic[P, T]):
    """Decorates a method that describes a request. Called on a Client, it returns the answer; called on an
    AsyncClient, something to await."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Asked[T]]) -> None:
        @wraps(describe)
        def ask(client: Any, *arguments: P.args, **named: P.kwargs) -> Any:
            request = describe(client, *arguments, **named)
            return client.get(request.path, **request.parameters)

        self._ask = ask

    @overload
    def __get__(self, client: None, owner: type) -> Callable[Concatenate[Any, P], Any]: ...

    @overload
    def __get__(self, client: Client, owner: type) -> Callable[P, T]: ...

    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, Awaitable[T]]: ...

    def __get__(self, client: object | None, owner: type) -> Any:
        return self._ask if client is None else MethodType(self._ask, client)


@dataclass(frozen=True)
class Followed(Generic[T]):
    """A stream; T are its frames."""

    session: Session


class Stream(Generic[P, T]):
    """Decorates a method that describes a stream. Called on a Client, it returns its frames one after the
    other; called on an AsyncClient, the same to iterate over with `async for`."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Followed[T]]) -> None:
        @wraps(describe)
        def follow(client: Any, *arguments: P.args, **named: P.kwargs) -> Any:
            return client.follow(describe(client, *arguments, **named).session)

        self._follow = follow

    @overload
    def __get__(self, client: None, owner: type) -> Callable[Concatenate[Any, P], Any]: ...

    @overload
    def __get__(self, client: Client, owner: type) -> Callable[P, Generator[T, None, None]]: ...

    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, AsyncGenerator[T, None]]: ...

    def __get__(self, client: object | None, owner: type) -> Any:
        return self._follow if client is None else MethodType(self._follow, client)
