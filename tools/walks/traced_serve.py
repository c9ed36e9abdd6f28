"""`manage.py serve` whose calls are recorded while whoever is connected to the socket WALKS_CONTROL wants it.

Each line that comes there, "start" or "stop", is answered with one; that of "stop" holds the calls. A program
of ours that the service starts with `-m` is recorded as well, and feeds may be on loopback here.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from .tracing import Call, Tracer, decode, encode

tracer = Tracer()
start_program = asyncio.create_subprocess_exec
PROGRAM = "tools.walks.traced_program"


async def start_traced(*command: str, env: dict[str, str] | None = None, **options: Any) -> Any:
    if tracer.is_on and command[:2] == (sys.executable, "-m"):
        report = programs() / str(len(list(programs().iterdir())))
        command = (sys.executable, "-m", PROGRAM, str(report), *command[2:])
    return await start_program(*command, env=env, **options)


def programs() -> Path:
    """Where they report."""
    return Path(os.environ["WALKS_CONTROL"]).parent / "programs"


def obey(listener: socket.socket) -> None:
    sys.settrace(None)
    connection, _ = listener.accept()
    with connection, connection.makefile("rwb") as lines:
        for line in lines:
            if line.strip() == b"start":
                tracer.start()
                lines.write(b"{}\n")
            else:
                lines.write(encode(gathered(tracer.stop())) + b"\n")
            lines.flush()


def gathered(calls: list[Call]) -> list[Call]:
    for path in programs().iterdir():
        calls += decode(path.read_bytes())
        path.unlink()
    return sorted(calls, key=lambda call: call.at_ns)


def main() -> None:
    programs().mkdir()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.environ["WALKS_CONTROL"])
    listener.listen()
    asyncio.create_subprocess_exec = start_traced  # type: ignore[assignment]
    tracer.install()
    threading.Thread(target=obey, args=(listener,), daemon=True).start()

    import django

    django.setup()
    from django.conf import settings
    from django.core.management import execute_from_command_line

    settings.NEWS_FEEDS_ON_LOOPBACK = True
    execute_from_command_line(["manage.py", "serve", *sys.argv[1:]])


if __name__ == "__main__":
    main()
