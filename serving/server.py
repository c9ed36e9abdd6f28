"""uvicorn's server with our protocols. It reports when it serves, and before it stops it gives proxies time
to notice."""

import asyncio
import errno
import logging
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

import uvicorn
from django.conf import settings
from django.core.management.base import CommandError

from core.fault_log import RepeatedWarning
from core.process import end_within
from core.program import command
from serving.http.protocol import HttpProtocol
from serving.websocket.protocol import WEBSOCKET_OPTIONS

from .draining import draining
from .workers.places import Place

# Accepts connections on a socket that several workers share, so that all of them come to have as many.
# libuv would accept all waiting connections at once, so the first worker to wake would have the most. After
# this many, the loop does other work.
MOST_AT_ONCE = 32
LOOK_AGAIN_S, TRY_AGAIN_S = 0.002, 0.1
logger = logging.getLogger(__name__)
not_accepted = RepeatedWarning(
    logger, "%d times no connection could be accepted, lately because of: %s. Other workers go on."
)


class Acceptor:
    """To uvicorn it is one of its servers."""

    def __init__(
        self,
        listener: socket.socket,
        place: Place,
        connections: Sized,
        make_protocol: Callable[[], asyncio.Protocol],
    ) -> None:
        self._listener, self._place, self._connections = listener, place, connections
        self._make_protocol = make_protocol
        self._loop = asyncio.get_running_loop()
        self._coming: set[asyncio.Task[object]] = set()
        """Accepted, and not among the connections yet."""
        self._resting: asyncio.TimerHandle | None = None
        self._is_closed = False

    def start(self, backlog: int) -> None:
        self._listener.setblocking(False)
        self._listener.listen(backlog)
        self._listen()

    def show(self) -> None:
        """Call it many times a second, or the others take this worker for gone."""
        if not self._is_closed and self._resting is None:
            self._place.show(len(self._connections) + len(self._coming), time.monotonic())

    def close(self) -> None:
        """Waiting connections are left to the others."""
        self._is_closed = True
        self._place.leave()
        if self._resting is not None:
            self._resting.cancel()
        self._loop.remove_reader(self._listener)

    async def wait_closed(self) -> None:
        """Until all that was accepted is among the connections."""
        if self._coming:
            await asyncio.wait(self._coming)

    def _listen(self) -> None:
        self._resting = None
        self.show()
        self._loop.add_reader(self._listener, self._accept)

    def _rest(self, seconds: float) -> None:
        # The listener stays readable for as long as a connection waits: the loop would turn without a pause.
        self._loop.remove_reader(self._listener)
        self._resting = self._loop.call_later(seconds, self._listen)

    def _accept(self) -> None:
        for _ in range(MOST_AT_ONCE):
            self.show()
            if self._place.is_ahead(time.monotonic()):
                self._rest(LOOK_AGAIN_S)
                return
            try:
                accepted, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                # Another worker was faster, or the client has gone.
                return
            except OSError as error:
                self._step_aside(error)
                return
            self._take(accepted)

    def _step_aside(self, error: OSError) -> None:
        """Descriptors or memory are used up here, and perhaps not in other workers."""
        not_accepted.tell(error)
        self._rest(TRY_AGAIN_S)
        self._place.leave()

    def _take(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        connecting = self._loop.connect_accepted_socket(self._make_protocol, accepted)
        task = asyncio.create_task(connecting, name="a connection begins")
        self._coming.add(task)
        task.add_done_callback(self._has_come)

    def _has_come(self, task: asyncio.Task[object]) -> None:
        self._coming.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.info("A connection ended as it began: %s", error)


UNREAD_MS = 60_000

# The kernel doubles it. Clients send little, and a refused body should not be received first.
RECEIVE_BUFFER_BYTES = 32 * 1024


def take_port(host: str, port: int) -> socket.socket:
    """Listen before anything else is done, so that a taken port is reported at once, not after a minute."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit this and what follows.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # One whose client never reads would outlive its own close.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_MS)
    try:
        listener.bind((host.strip("[]"), port))
    except OverflowError:
        raise CommandError(f"{port} is not a port; choose one up to 65535.") from None
    except OSError as error:
        listener.close()
        raise CommandError(_sentence(error, host, port)) from None
    return listener


def _sentence(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        other = command(f"serve --port {port + 1}")
        return f"Port {port} is taken. Stop the program that uses it, or choose another: `{other}`"
    if error.errno == errno.EACCES:
        return f"Port {port} is for the system. Choose one above 1023: `{command('serve --port 8000')}`"
    return f"Cannot listen on {host}, port {port}: {error.strerror or error}."


def shown_address(host: str, port: int) -> str:
    """The address to type on this machine."""
    shown = "127.0.0.1" if host in settings.EVERYWHERE else f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"


STEP_S = 0.1

# A client whose connection was just accepted may not have sent its request yet.
LAST_COMERS_S = 1.0

# Cleaning up after this process may take this long.
TIDY_WITHIN_S = 2.0


def interrupt_once(number: int, frame: FrameType | None) -> NoReturn:
    """All is put away by then: Ctrl-C again would only break off Python's own end, and show where."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise KeyboardInterrupt


class Server(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        on_serving: Callable[[], None],
        on_stopping: Callable[[], None] = lambda: None,
        place: Place | None = None,
    ) -> None:
        """With a place among the workers that share its sockets, if there are others."""
        super().__init__(config)
        self._on_serving, self._on_stopping = on_serving, on_stopping
        self._place = place
        self._acceptors: list[Acceptor] = []
        self._pause_s, self._is_followed = 0.0, False

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        is_main = threading.current_thread() is threading.main_thread()
        # At the end, uvicorn passes received signals to the handlers that it found here.
        before = signal.signal(signal.SIGINT, interrupt_once) if is_main else None
        with super().capture_signals():
            yield
        if is_main:
            signal.signal(signal.SIGINT, before)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets if self._place is None else [])
        if self.started and self._place is not None:
            self._accept_in_turn(sockets or [], self._place)
        if self.started and not self.should_exit:
            self._on_serving()

    def _accept_in_turn(self, listeners: list[socket.socket], place: Place) -> None:
        def make_protocol() -> asyncio.Protocol:
            return HttpProtocol(
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state
            )

        connections = self.server_state.connections
        self._acceptors = [Acceptor(each, place, connections, make_protocol) for each in listeners]
        for acceptor in self._acceptors:
            acceptor.start(self.config.backlog)
        self.servers = [*self._acceptors]  # type: ignore[list-item]

    async def on_tick(self, counter: int) -> bool:
        for acceptor in self._acceptors:
            acceptor.show()
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Ctrl-C needs no pause; after SIGTERM a proxy may have to notice. A second signal ends the pause.
        is_first = not self.should_exit
        self._pause_s = settings.DRAIN_S if is_first and self.started and sig == signal.SIGTERM else 0.0
        draining.begin()
        end_within(settings.DRAIN_S + settings.STOP_WITHIN_S)
        super().handle_exit(sig, frame)

    def retire(self) -> None:
        """Another worker serves at the same address, so a proxy need not notice; but clients may send
        requests on open connections at any time. May be called from any thread."""
        self._pause_s, self._is_followed = max(settings.DRAIN_S, LAST_COMERS_S), True
        draining.begin()
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """First `/readyz` says so and every answer ends its connection; then no connection is accepted."""
        draining.begin()
        self._on_stopping()
        if self._is_followed:
            self._close_listeners()
        loop = asyncio.get_running_loop()
        began_at, ticks = loop.time(), 0
        while loop.time() - began_at < self._pause_s:
            await asyncio.sleep(STEP_S)
            await self.on_tick(ticks := ticks + 1)
        self._close_listeners()
        for acceptor in self._acceptors:
            await acceptor.wait_closed()
        await self._tidy_up()
        # All connections are notified and closed before anything else can happen.
        await super().shutdown(sockets)
        if self.force_exit:
            await self._end_at_once()

    async def _end_at_once(self) -> None:
        """After a second Ctrl-C the service does not wait for clients, but still saves its data."""
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        if tasks := self.server_state.tasks:
            await asyncio.wait(tasks, timeout=TIDY_WITHIN_S)
        await self.lifespan.shutdown()

    def _close_listeners(self) -> None:
        for server in self.servers:
            server.close()

    async def _tidy_up(self) -> None:
        """A fault here must not keep the process from ending."""
        # A socket that was just accepted becomes a connection.
        await asyncio.sleep(0)
        for act in draining.before_closing:
            try:
                async with asyncio.timeout(TIDY_WITHIN_S):
                    await act()
            except Exception as error:  # noqa: BLE001 - the top of what is done at the end
                logger.warning("Before the connections were closed, something failed: %r", error)


UVICORN_OPTIONS: dict[str, Any] = WEBSOCKET_OPTIONS | {"http": HttpProtocol}
