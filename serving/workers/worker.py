"""A worker: the service in a process of its own, tied to the life of its supervisor."""

import contextlib
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection

import django
import uvicorn

from core.process import log_uncaught, wait_for_database
from serving.metrics.worker_link import worker_link
from serving.server import Server

from .places import Place

SERVING, ALIVE, STOPPING, RETIRE = b"serving", b"alive", b"stopping", b"retire"
ALIVE_EVERY_S = 1
logger = logging.getLogger(__name__)


@contextlib.contextmanager
def ctrl_c_held_back() -> Iterator[None]:
    """What a terminal sends to all of its processes comes to a worker that is started here in `work`."""
    # multiprocessing starts it with the first worker, and starting it unblocks the signal.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def work(
    config: uvicorn.Config,
    sockets: list[socket.socket],
    place: Place,
    supervisor: Connection,
    figures: socket.socket | None,
    ends_within_s: float,
) -> None:
    """The whole life of the process. It ends when its supervisor ends, even if that was killed."""
    # Closing a terminal signals every process in it, but the supervisor decides when a worker ends.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # While nothing is served yet, it ends at once and without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    pipe = SupervisorPipe(supervisor, ends_within_s)
    worker_link.end = figures
    threading.Thread(target=pipe.hold, name="supervisor", daemon=True).start()
    django.setup()
    config.configure_logging()
    log_uncaught()
    # A worker that ended because the database refused it would only be started again.
    wait_for_database(f"This worker (pid {os.getpid()})", whatever_it_says=True)
    config.callback_notify, config.timeout_notify = pipe.say_alive, ALIVE_EVERY_S
    server = Server(config, lambda: pipe.say(SERVING), lambda: pipe.say(STOPPING), place)
    pipe.retire = server.retire
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets)
    if not server.started:
        sys.exit(uvicorn.config.STARTUP_FAILURE)


def end_ourselves() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


class SupervisorPipe:
    """The pipe to the supervisor. It breaks only when the supervisor has ended."""

    def __init__(self, supervisor: Connection, ends_within_s: float) -> None:
        self._supervisor, self._ends_within_s = supervisor, ends_within_s
        self.retire: Callable[[], None] = end_ourselves

    def hold(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            while self._supervisor.recv_bytes() == RETIRE:
                self.retire()
        logger.error("The supervisor of this worker (pid %s) has ended, so it stops", os.getpid())
        self.retire()
        time.sleep(self._ends_within_s)
        os._exit(1)

    def say(self, word: bytes) -> None:
        with contextlib.suppress(OSError):
            self._supervisor.send_bytes(word)

    async def say_alive(self) -> None:
        self.say(ALIVE)
