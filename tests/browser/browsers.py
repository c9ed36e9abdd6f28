"""Debian's browsers, driven by Playwright as well as its own builds: the newest Chromium there is and the
oldest, because they differ in what they forgive, and Firefox."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Playwright

from tests.programs.debian import output, require_debian, unpacked, versions_of

from . import firefox

# Root, as in a container, has no user namespace to build the sandbox from; the rest silences calls home.
LAUNCH_ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # The shell would hint its letters, and no other build does.
    "--font-render-hinting=none",
)
SHELL = "chromium-headless-shell"


def require_chromium() -> str:
    """The path of chromium, installed if need be; without one a test is skipped, but CI fails."""
    return require_debian("chromium")


def launch_newest(playwright: Playwright) -> Browser:
    """Chromium without the windows around its pages, which cost a third of the time."""
    return launch_chromium(playwright, require_debian(SHELL), -1, SHELL)


def launch_oldest(playwright: Playwright) -> Browser:
    """The whole browser."""
    return launch_chromium(playwright, require_chromium(), 0, "chromium")


def launch_chromium(playwright: Playwright, path: str, at: int, package: str) -> Browser:
    versions = versions_of(package)
    if versions and f"{versions[at].partition('-')[0]}" not in output(path, "--version"):
        # Both need what stands in the common package.
        folder = unpacked(versions[at], package, "chromium-common")
        path = str(folder / "usr/lib/chromium" / package)
    return playwright.chromium.launch(executable_path=path, args=[*LAUNCH_ARGS])


def launch_firefox(playwright: Playwright) -> Browser:
    program = firefox.write_program(require_debian("firefox-esr"), Path(tempfile.mkdtemp()))
    return playwright.firefox.launch(channel="moz-firefox", executable_path=program)


LAUNCH: dict[str, Callable[[Playwright], Browser]] = {
    "newest": launch_newest,
    "oldest": launch_oldest,
    "firefox": launch_firefox,
}
