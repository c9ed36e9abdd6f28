"""TLS in front of a service, on one thread of its own."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

from core.background import cancel_and_wait

BYTES = 65_536


async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(BYTES):
            target.write(data)
            await target.drain()
    except OSError:
        pass
    finally:
        target.close()


@contextmanager
def tls_front(port: int, key: Path, certificate: Path) -> Iterator[str]:
    """Its address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    loop = asyncio.new_event_loop()
    joins: set[asyncio.Task[None]] = set()

    async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        me = cast("asyncio.Task[None]", asyncio.current_task())
        joins.add(me)
        me.add_done_callback(joins.discard)
        back, forth = await asyncio.open_connection("127.0.0.1", port)
        try:
            await asyncio.gather(copy(reader, forth), copy(back, writer))
        finally:
            for each in (forth, writer):
                each.transport.abort()
                with suppress(OSError):
                    await each.wait_closed()

    server = loop.run_until_complete(asyncio.start_server(join, "127.0.0.1", 0, ssl=context))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        asyncio.run_coroutine_threadsafe(end(server, joins), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def end(server: asyncio.Server, joins: set[asyncio.Task[None]]) -> None:
    server.close()
    await cancel_and_wait(*joins)
