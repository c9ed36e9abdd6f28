"""The worker's side: it tells the supervisor its figures, and asks it for those of all."""

import asyncio
import contextlib
import logging
import socket

from asgiref.sync import sync_to_async

from core.background import cancel_and_wait
from core.deadlines import patient

from .frames import ASK, FIGURES, TOTALS, WANT, encoder, frame, read_frame
from .snapshots import process_metrics

logger = logging.getLogger(__name__)

# Longer than the supervisor waits for a worker that does not answer.
TOTALS_WITHIN_S = patient(6.0)
LAST_WORDS_WITHIN_S = patient(1.0)
BROKEN = (OSError, asyncio.IncompleteReadError)


class SupervisorSilent(Exception):
    """There is a supervisor, and it does not say what all its workers count."""


class WorkerLink:
    def __init__(self) -> None:
        self.end: socket.socket | None = None
        """Set where the process has a supervisor, before it serves."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._hearing: asyncio.Task[None] | None = None
        self._wanted: asyncio.Future[bytes] | None = None

    @property
    def is_there(self) -> bool:
        return self.end is not None

    async def start(self) -> None:
        if self.end is not None:
            self._loop = asyncio.get_running_loop()
            reader, self._writer = await asyncio.open_unix_connection(sock=self.end)
            # From its first word on, the supervisor waits for this worker.
            await self._tell(self._writer)
            self._hearing = asyncio.create_task(self._hear(reader, self._writer), name="figures")

    async def stop(self) -> None:
        """The last of everything that stops, so that nothing is counted after it."""
        await cancel_and_wait(self._hearing)
        if self._writer is None:
            return
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(LAST_WORDS_WITHIN_S):
                self._writer.write(frame(FIGURES, encoder.encode(process_metrics.last_words())))
                await self._writer.drain()
        self._writer.close()
        self._writer = self._loop = None

    def totals_from_thread(self) -> bytes:
        """The text of /metrics of all workers."""
        if self._loop is None:
            raise SupervisorSilent
        # Named, because a page may be made on a loop of its own, and the connection belongs to this one.
        return asyncio.run_coroutine_threadsafe(self._totals(), self._loop).result()

    async def _totals(self) -> bytes:
        if self._writer is None:
            raise SupervisorSilent
        if self._wanted is None or self._wanted.done():
            self._wanted = asyncio.get_running_loop().create_future()
            self._writer.write(frame(WANT))
        try:
            async with asyncio.timeout(TOTALS_WITHIN_S):
                return await asyncio.shield(self._wanted)
        except TimeoutError:
            self._wanted = None
            raise SupervisorSilent from None

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(*BROKEN):
            while True:
                kind, payload = await read_frame(reader)
                if kind == ASK:
                    await self._tell(writer)
                    await writer.drain()
                elif kind == TOTALS and self._wanted is not None and not self._wanted.done():
                    self._wanted.set_result(payload)
        # The supervisor has ended, or did not understand what it was told.
        writer.close()
        self._writer = None

    async def _tell(self, writer: asyncio.StreamWriter) -> None:
        try:
            snapshot = await sync_to_async(process_metrics.snapshot, thread_sensitive=False)()
            # Encoded in a thread too: a long answer holds up no tick.
            payload = await asyncio.to_thread(encoder.encode, snapshot)
        except Exception:
            logger.exception("The figures of this worker could not be collected")
            return
        writer.write(frame(FIGURES, payload))


worker_link = WorkerLink()
