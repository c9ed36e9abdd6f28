"""Pages, on Django's own handler: each is made in one of a few threads, and sent while that makes the
next.

Whether a client may send a large body is decided before it is read: Django would read all of it before
authenticating."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from csp.utils import build_policy
from django.conf import settings
from django.contrib.auth import get_user
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.db import Error, close_old_connections
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse, parse_cookie
from django.template.loader import render_to_string
from django.urls import set_script_prefix

from core.addresses import address_of
from core.background import retrieve
from core.cached import shared_work_s
from core.contract.errors import ApiError, Overloaded, as_refusal, refusal_response
from core.deadlines import patient
from core.events.event_feed import AWAY, feed
from core.request_headers import check_host, header
from serving.http.bounds import MOST_BODY_BYTES, MOST_DIGITS, is_import
from serving.prometheus import METRICS_PATH, refuse_metrics

from . import strangers
from .static_files import StaticFiles
from .strangers import USER, PageVisit, kept_pages, note_route, strangers_work

# The few threads in which pages run, and the queue in front of them.
# After this a request is refused, so that its client does not wait without an answer.
PATIENCE_S = patient(5.0)
RETRY_AFTER_S = 2

Worked = Callable[[float], object]
of_thread = threading.local()


def end_page() -> float:
    """For how long its thread kept the processor busy since the page before ended."""
    close_old_connections()
    before_s: float = getattr(of_thread, "worked_s", 0.0)
    of_thread.worked_s = worked_s = time.thread_time() - shared_work_s()
    return worked_s - before_s


class PageThreads:
    """A page has a thread to itself until it is made. Each thread keeps its connection to the database, so
    there are never more connections than threads."""

    def __init__(self, count: int, most_waiting: int, name: str) -> None:
        self._most_waiting = most_waiting
        self._free = deque(ThreadPoolExecutor(1, thread_name_prefix=f"{name}-{n}") for n in range(count))
        self._waiting: deque[asyncio.Future[ThreadPoolExecutor]] = deque()

    @asynccontextmanager
    async def lease(self, worked: Worked | None = None) -> AsyncIterator[None]:
        """Tells `worked` for how long the thread kept the processor busy."""
        thread = await self._take()
        try:
            async with ThreadSensitiveContext(executor=thread):
                yield
        finally:
            self._give_back(thread, worked)

    async def _take(self) -> ThreadPoolExecutor:
        if self._free:
            return self._free.popleft()
        if len(self._waiting) >= self._most_waiting:
            raise Overloaded(retry_after=RETRY_AFTER_S)
        turn: asyncio.Future[ThreadPoolExecutor] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                # A thread became free at the very moment when the waiting ended.
                self._free_thread(turn.result())
            if isinstance(error, TimeoutError):
                raise Overloaded(retry_after=RETRY_AFTER_S) from None
            raise
        finally:
            with suppress(ValueError):
                self._waiting.remove(turn)

    def _give_back(self, thread: ThreadPoolExecutor, worked: Worked | None) -> None:
        """Waits for the pages that still run, because one whose client has gone cannot be stopped."""
        loop = asyncio.get_running_loop()

        def finish(seconds: float) -> None:
            self._free_thread(thread)
            if worked is not None:
                worked(seconds)

        def is_idle(ended: Future[float]) -> None:
            try:
                loop.call_soon_threadsafe(finish, 0.0 if ended.exception() else ended.result())
            except RuntimeError:
                # The loop has ended, and with it all waiting pages.
                self._free.append(thread)

        thread.submit(end_page).add_done_callback(is_idle)

    def _free_thread(self, thread: ThreadPoolExecutor) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(thread)
                return
        self._free.append(thread)


class StaffOnly(ApiError):
    status_code, code = 413, "too_large"
    message = f"Only staff who are logged in may send more than {MOST_BODY_BYTES:,} bytes here."


def may_be_large(scope: dict[str, Any]) -> bool:
    length = header(scope, b"content-length") or ""
    if length.isdigit() and len(length) <= MOST_DIGITS:
        return int(length) > MOST_BODY_BYTES
    return bool(length or header(scope, b"transfer-encoding"))


def session_key(scope: dict[str, Any]) -> str:
    cookies = b"; ".join(value for name, value in scope["headers"] if name == b"cookie").decode("latin-1")
    return parse_cookie(cookies).get(settings.SESSION_COOKIE_NAME, "")


def is_from_user(scope: dict[str, Any], *, staff: bool) -> bool:
    """Asks the database, so it needs a thread."""
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key(scope))
    user = get_user(request)
    return user.is_active and (not staff or getattr(user, "is_staff", False))


T = TypeVar("T")
MOST_WAITING = 128

# A page that takes longer is still waited for if the database answers others.
UNLESS_AWAY_S = 2.0


class PageHandler(ASGIHandler):
    """Does not watch for clients that leave, as Django's does, because a running thread cannot be stopped."""

    def __init__(self) -> None:
        super().__init__()
        self._threads = PageThreads(settings.PAGE_THREADS, MOST_WAITING, "pages")
        self._reserved = PageThreads(1, MOST_WAITING, "operators")
        self._static_files = StaticFiles()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        visit = PageVisit(scope)
        try:
            at_once = await self._answer_at_once(scope)
        except ApiError as refusal:
            at_once = refuse_page(scope, refusal)
        if at_once is not None:
            visit.answered(at_once)
            if at_once.status_code == TOO_MANY:
                # Refused at once, clients would try again at once, and refusals have a cost, too.
                await asyncio.sleep(strangers.REFUSED_AFTER_S)
            await self._finish(at_once, send)
            return
        try:
            # Reads the body before taking a thread, so that a slow sender does not delay other clients.
            body = await self.read_body(receive)
        except RequestAborted:
            return
        # Operators do not queue behind the clients that keep the service busy.
        is_for_metrics = scope["path"] == METRICS_PATH
        threads = self._reserved if is_for_metrics else self._threads
        making = asyncio.ensure_future(self._make(threads, scope, receive, body))
        try:
            response = await (making if is_for_metrics else unless_database_stops(making))
        except Overloaded as refusal:
            response = refuse_page(scope, refusal)
        if response is not None:
            visit.answered(response)
            await self._finish(response, send)

    async def _answer_at_once(self, scope: dict[str, Any]) -> HttpResponseBase | None:
        """Before a body is read or a thread is waited for. Raises ApiError."""
        # Without a Host header Django would take the server's own name, and of a wrong one it logs a lot.
        check_host(scope)
        if is_import(scope["path"]) and may_be_large(scope) and not await self._knows(scope, staff=True):
            raise StaffOnly(max=MOST_BODY_BYTES)
        if scope["path"] == METRICS_PATH:
            # They have one thread, which strangers could keep busy.
            return refuse_metrics(header(scope, b"authorization") or "")
        if (file := await self._static_files.serve(scope)) is not None:
            return file
        await self._refuse_busy(scope)
        return kept_pages.get(scope)

    async def _refuse_busy(self, scope: dict[str, Any]) -> None:
        """People who are logged in are served, whatever others at their address do."""
        refusal = strangers_work.refusal(address_of(scope))
        if refusal is not None and not await self._knows(scope, staff=False):
            raise refusal

    async def _knows(self, scope: dict[str, Any], *, staff: bool) -> bool:
        async def ask() -> bool:
            async with self._threads.lease():
                return await sync_to_async(is_from_user)(scope, staff=staff)

        try:
            return bool(session_key(scope)) and await unless_database_stops(asyncio.ensure_future(ask()))
        except Error as error:
            raise as_refusal(error) from error

    async def _make(
        self, threads: PageThreads, scope: dict[str, Any], receive: Any, body: Any
    ) -> HttpResponseBase | None:
        def worked(seconds: float) -> None:
            if scope["path"] != METRICS_PATH and scope.get(USER) is None:
                strangers_work.add(address_of(scope), seconds)

        try:
            async with threads.lease(worked):
                if await has_left(receive):
                    return None
                # Another page may have made it while this one waited.
                return kept_pages.get(scope) or await self._respond(scope, body)
        finally:
            body.close()

    async def _respond(self, scope: dict[str, Any], body: Any) -> HttpResponseBase:
        set_script_prefix(get_script_prefix(scope))
        # Before the first await, so that only one of many simultaneous requests makes it.
        kept_pages.renew(scope)
        await signals.request_started.asend(sender=self.__class__, scope=scope)
        request, refusal = self.create_request(scope, body)
        response: Any = refusal if request is None else await self.run_get_response(request)
        if request is not None:
            note_route(scope, request)
            kept_pages.put(scope, request, response)
        if not isinstance(response, StreamingHttpResponse):
            await sync_to_async(response.close)()
        elif not response.is_async:
            pieces: Any = response.streaming_content
            response.streaming_content = [await sync_to_async(b"".join)(pieces)]
        return response  # type: ignore[no-any-return]

    async def _finish(self, response: HttpResponseBase, send: Any) -> None:
        """Needs no thread, so that a slow reader does not delay other clients."""
        await self.send_response(response, send)
        if response.streaming:
            await asyncio.to_thread(response.close)


async def unless_database_stops(making: asyncio.Future[T]) -> T:
    """A suspended database neither answers nor refuses. A page that waits for it keeps its thread,
    which cannot be ended, but its client is refused."""
    while not (await asyncio.wait((making,), timeout=UNLESS_AWAY_S))[0]:
        if feed.is_database_away:
            making.add_done_callback(retrieve)
            raise Overloaded(AWAY, retry_after=2)
    return making.result()


async def has_left(receive: Any) -> bool:
    """Whether the client has gone away while its request waited."""
    message: asyncio.Future[Any] = asyncio.ensure_future(receive())
    await asyncio.sleep(0)
    message.cancel()
    return message.done()


TOO_MANY = 429
WITH_PAGE = (400, TOO_MANY, 503)


def refuse_page(scope: dict[str, Any], refusal: ApiError) -> HttpResponse:
    """A browser gets a page where there is one, other clients the error body. It needs neither a thread nor
    the database, because both are overloaded at such a moment."""
    status = refusal.status_code
    if "text/html" not in (header(scope, b"accept") or "") or status not in WITH_PAGE:
        return refusal_response(refusal)
    headers = {
        **refusal.headers,
        "Content-Security-Policy": build_policy(),
        "X-Frame-Options": settings.X_FRAME_OPTIONS,
        "Referrer-Policy": settings.SECURE_REFERRER_POLICY,
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return HttpResponse(_page(status), status=status, headers=headers)


@cache
def _page(status: int) -> bytes:
    return render_to_string(f"{status}.html").encode()
