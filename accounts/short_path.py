"""GETs of the contract on the short path: their caller is remembered, and memory alone answers them."""

import time
from collections.abc import Callable, Coroutine
from functools import lru_cache, partial
from inspect import iscoroutinefunction
from itertools import takewhile
from typing import Any, NamedTuple

import msgspec

from core.addresses import ends_are_loopback, headers_name_loopback
from core.contract.answers import AS_JSON, ID_HEADER, JSON, AlreadyDone, Answer, Body, compose_headers
from core.contract.errors import new_request_id_bytes
from core.logs import logged_successes
from core.request_headers import came_plain, is_our_host
from core.viewset import ApiViewSet
from serving.api_handler import route_of
from serving.http.short_path import Give, Headers, ShortPathProtocol
from serving.metrics.http_requests import http_requests

from .keys.cache import key_cache
from .keys.caller import Caller
from .limits.throttling import throttle
from .limits.window import Standing, rate_headers
from .usage import usage_buffer

LONGEST_TARGET = 200


@lru_cache(maxsize=1024)
def head_of(policy: str, limit: int, *own: str) -> tuple[bytes, bytes]:
    """The head of an answer with headers of its own: the lines that are always the same, and the rest."""
    window = rate_headers(policy.replace("%", "%%"), limit, "%d", "%d", "%d")
    headers = compose_headers(dict.fromkeys(own, "%b"), {ID_HEADER: "%b", **window}, JSON, "%d")
    lines = [f"{name.lower()}: {value}\r\n" for name, value in headers.items()]
    ready = "".join(takewhile(lambda line: "%" not in line, lines))
    whole = "".join([*lines, "\r\n"])
    return ready.encode("latin-1"), whole.removeprefix(ready).encode("latin-1")


# The steps that the short path reimplements: a viewset that overrides one never takes it.
STEPS = (
    "dispatch",
    "initial",
    "perform_authentication",
    "check_throttles",
    "handler_of",
    "finalize_response",
    "authentication_classes",
    "throttle_classes",
)


def has_own_steps(view: type[ApiViewSet]) -> bool:
    return any(getattr(view, step) is not getattr(ApiViewSet, step) for step in STEPS)


class KnownTarget(NamedTuple):
    act: Callable[[], Answer | Coroutine[Any, Any, Answer]]
    route: str


@lru_cache(maxsize=8192)
def target_of(target: bytes) -> KnownTarget | None:
    """What is asked for, if memory alone answers it."""
    if not target.startswith(b"/api/") or not target.isascii() or b"%" in target or b"#" in target:
        return None
    path, _, query = target.decode("ascii").partition("?")
    view, names, route = route_of(path)
    if not issubclass(view.cls, ApiViewSet) or has_own_steps(view.cls):
        return None
    action = view.actions["get"]
    if iscoroutinefunction(getattr(view.cls, action)):
        return None
    viewset = view.cls(**view.initkwargs)
    viewset.scope = {"query_string": query.encode()}
    # Such an action reads only the parameters of its request.
    return KnownTarget(partial(getattr(viewset, action), None, **names), route)


class KeyedAnswer:
    __slots__ = ("_act", "_digest", "_names_loopback", "_times")

    def __init__(self, target: KnownTarget, digest: bytes, *, names_loopback: bool) -> None:
        self._act, self._names_loopback = target.act, names_loopback
        self._digest = digest
        self._times = http_requests.of(target.route, "GET", 200)

    def give(self, asker: ShortPathProtocol) -> bool:
        began_s = time.perf_counter()
        caller = key_cache.recall(self._digest)
        # A log of every request needs more than is known here.
        if caller is None or logged_successes.are_all or (caller.is_demo and not self._is_local(asker)):
            return False
        standing = throttle.admit_now(caller)
        if standing is not None:
            return self._conclude(asker, caller, standing, began_s)
        throttle.admit_later(caller, partial(self._conclude_later, asker, caller, began_s))
        asker.wait()
        return True

    def _is_local(self, asker: ShortPathProtocol) -> bool:
        return self._names_loopback and ends_are_loopback(asker.client, asker.server)

    def _conclude_later(
        self, asker: ShortPathProtocol, caller: Caller, began_s: float, standing: Standing
    ) -> None:
        if not self._conclude(asker, caller, standing, began_s):
            asker.give_back()

    def _conclude(self, asker: ShortPathProtocol, caller: Caller, standing: Standing, began_s: float) -> bool:
        try:
            encoded = self._encode(caller, standing) if standing.admitted else None
        except Exception:  # noqa: BLE001 - whatever it is, the ordinary path meets it too, and says so
            encoded = None
        took_s = time.perf_counter() - began_s
        if encoded is None or took_s >= logged_successes.slower_than_s:
            # Refusals and slow answers must be logged.
            asker.already_done = AlreadyDone(began_s, standing)
            return False
        usage_buffer.note_request(caller.account_id)
        asker.answer(*encoded)
        self._times.note(took_s)
        return True

    def _encode(self, caller: Caller, standing: Standing) -> tuple[bytes, bytes, Body] | None:
        answer = self._act()
        if isinstance(answer, Coroutine):
            # Memory alone cannot answer this one.
            answer.close()
            return None
        if answer.status != 200:
            return None
        own, content = answer.headers, answer.content
        if isinstance(content, msgspec.Struct):
            content = AS_JSON.render(content)
        size = len(content) if isinstance(content, bytes) else sum(map(len, content))
        left, reset, wait_s = standing.figures()
        ready, rest = head_of(caller.policy, standing.limit, *own)
        given = *map(str.encode, own.values()), new_request_id_bytes(), left, reset, left, wait_s, size
        return ready, rest % given, content


def find(target: bytes, headers: Headers) -> Give | None:
    if len(target) > LONGEST_TARGET:
        return None
    keys = [value for name, value in headers if name == b"x-api-key"]
    hosts = [value for name, value in headers if name == b"host"]
    if len(keys) != 1 or came_plain({"headers": headers}) or not is_our_host(hosts[0].decode("latin-1")):
        return None
    digest = key_cache.digest(keys[0].decode("latin-1"))
    # Nothing is remembered for strangers.
    if key_cache.recall(digest) is None or (found := target_of(target)) is None:
        return None
    return KeyedAnswer(found, digest, names_loopback=headers_name_loopback(headers)).give
