"""Debian's Firefox, which Playwright drives by WebDriver BiDi; run as a program, the line between the two. It
answers what Playwright asks of every browser and this one does not know yet, so that all pages are light."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve

UNKNOWN = "emulation.setMediaFeaturesOverride"
LISTENING = re.compile(rb"WebDriver BiDi listening on (ws://\S+)")


def write_program(firefox: str, folder: Path) -> Path:
    """What Playwright starts in the place of Firefox."""
    program = folder / "firefox"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{__file__}" "{firefox}" "$@"\n')
    program.chmod(0o700)
    return program


async def main(firefox: str, *options: str) -> None:
    running = await asyncio.create_subprocess_exec(firefox, *options, stderr=asyncio.subprocess.PIPE)
    assert running.stderr is not None
    async for line in running.stderr:
        if found := LISTENING.search(line):
            break
        sys.stderr.buffer.write(line)
    else:
        sys.exit("Firefox does not listen.")
    address = found[1].decode()

    async def relay(playwright: ServerConnection) -> None:
        async with connect(f"{address}/session", max_size=None, open_timeout=None) as browser:
            await asyncio.gather(forward(playwright, browser), backward(browser, playwright))

    async with serve(relay, "127.0.0.1", 0, max_size=None) as server:
        port = server.sockets[0].getsockname()[1]
        sys.stderr.write(f"WebDriver BiDi listening on ws://127.0.0.1:{port}\n")
        sys.stderr.flush()
        async for _ in running.stderr:
            pass


async def forward(playwright: ServerConnection, browser: ClientConnection) -> None:
    async for message in playwright:
        asked = json.loads(message)
        if asked["method"] == UNKNOWN:
            await playwright.send(json.dumps({"type": "success", "id": asked["id"], "result": {}}))
        else:
            await browser.send(message)
    await browser.close()


async def backward(browser: ClientConnection, playwright: ServerConnection) -> None:
    async for message in browser:
        await playwright.send(message)
    await playwright.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
