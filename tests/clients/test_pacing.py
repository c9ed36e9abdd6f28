"""Requests of one client wait for room in the account's window instead of being refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from tickwire import AsyncClient, Client
from tickwire.pacing import Pacing

from .history.keeping import Answer, Keeper, Request, in_json, keeping, refusal
from .test_typescript import said

pytestmark = pytest.mark.served

KEY = "tw_live_any"
LIMIT, REQUESTS = 5, 13


class Windowed(Keeper):
    """Its window is a second."""

    def __init__(self) -> None:
        super().__init__()
        self._lock, self._left, self.refused = threading.Lock(), LIMIT, 0

    def answer(self, request: Request) -> Answer:
        with self._lock:
            is_admitted = self._left > 0
            self._left -= is_admitted
            self.refused += not is_admitted
            left = self._left
        if is_admitted:
            threading.Timer(1, self._free).start()
        answer = in_json({}) if is_admitted else refusal(429, "rate_limit_exceeded")
        return answer._replace(headers=answer.headers | limited(left, 1) | {"Retry-After": "1"})

    def _free(self) -> None:
        with self._lock:
            self._left += 1


def limited(left: int, wait_s: int) -> dict[str, str]:
    return {"RateLimit": f'"free";r={left};t={wait_s}'}


def in_threads(url: str) -> int:
    with Client(KEY, url) as client, ThreadPoolExecutor(REQUESTS) as pool:
        asked = [pool.submit(client.limits) for _ in range(REQUESTS)]
        return len([each.result() for each in asked])


def in_tasks(url: str) -> int:
    async def gather() -> int:
        async with AsyncClient(KEY, url) as client:
            return len(await asyncio.gather(*(client.limits() for _ in range(REQUESTS))))

    return asyncio.run(gather())


def in_promises(url: str) -> int:
    (answers,) = said(url, "gathered", REQUESTS)
    return len(answers)


@pytest.mark.parametrize("gather", [in_threads, in_tasks, in_promises])
def test_many_requests_at_once_wait_their_turn_instead_of_being_refused(
    built: None, gather: Callable[[str], int]
) -> None:
    with keeping(window := Windowed()):
        assert gather(window.url) == REQUESTS
        # On a slow machine its seconds are longer than the client's: then one is refused that goes alone.
        assert window.refused < REQUESTS / LIMIT


def test_time_out_of_the_caller_ends_a_wait_and_leaves_the_turn_to_others() -> None:
    async def ask(url: str) -> None:
        async with AsyncClient(KEY, url) as client:
            for _ in range(LIMIT):
                await client.limits()
            for _ in range(2):
                with pytest.raises(TimeoutError):
                    # As soon as it waits.
                    async with asyncio.timeout_at(0):
                        await client.limits()
            await client.limits()

    with keeping(window := Windowed()):
        asyncio.run(ask(window.url))
        assert len(window.asked) - window.refused == LIMIT + 1


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_first_request_goes_alone_and_its_answer_says_how_many_follow() -> None:
    pacing = Pacing(Clock())
    assert pacing.wait_s() == 0
    first = pacing.begin()
    assert pacing.wait_s() is None
    pacing.end(first, limited(2, 60))
    numbers = []
    for _ in range(2):
        assert pacing.wait_s() == 0
        numbers.append(pacing.begin())
    assert pacing.wait_s() is None
    for number in numbers:
        pacing.end(number, limited(0, 60))
    assert pacing.wait_s() == 60


def test_wait_counts_from_the_answer_and_is_never_longer_than_a_window() -> None:
    clock = Clock()
    pacing = Pacing(clock)
    pacing.end(pacing.begin(), limited(0, 999_999))
    assert pacing.wait_s() == 60
    clock.now_s = 45.0
    assert pacing.wait_s() == 15
    clock.now_s = 60.0
    assert pacing.wait_s() == 0


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_late_answer_never_makes_room_that_others_have_taken(order: list[int]) -> None:
    pacing = Pacing(Clock())
    pacing.end(pacing.begin(), limited(3, 60))
    numbers = [pacing.begin() for _ in range(3)]
    for each in order:
        pacing.end(numbers[each], limited(2 - each, 60))
    assert pacing.wait_s() == 60


@pytest.mark.parametrize("headers", [{}, None])
def test_service_without_limits_is_asked_at_once_and_a_lost_request_keeps_its_room(
    headers: dict[str, str] | None,
) -> None:
    pacing = Pacing(Clock())
    pacing.end(pacing.begin(), headers)
    for _ in range(100):
        assert pacing.wait_s() == 0
        number = pacing.begin()
    pacing.end(number, limited(200, 60))
    # From now on it is known to have some.
    pacing = Pacing(Clock())
    pacing.end(pacing.begin(), limited(1, 60))
    pacing.end(pacing.begin(), None)
    assert pacing.wait_s() == 0
