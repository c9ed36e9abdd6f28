"""Accepts connections on a socket that several workers share, so that all of them come to have as many.

libuv would accept whatever waits as soon as a worker wakes, so the first to wake would have the most."""

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Sized

from core.fault_log import RepeatedWarning

from .places import Place

# The loop has other things to do between so many.
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
        """To be called many times a second, or the others believe this worker to be gone."""
        if not self._is_closed and self._resting is None:
            self._place.show(len(self._connections) + len(self._coming), time.monotonic())

    def close(self) -> None:
        """What waits is left to the others."""
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
