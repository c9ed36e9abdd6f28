"""Debian's chromium for the browser tests: Playwright drives it as well as a build of its own."""

import os
import shutil
import subprocess
from contextlib import suppress

import pytest

CHROMIUM = "/usr/bin/chromium"
INSTALL_TIMEOUT_S = 300
# Parallel test processes all find it missing: the later ones wait for the lock.
PACKAGES = ("-q", "-y", "-o", "DPkg::Lock::Timeout=240", "--no-install-recommends", "chromium")
STEPS = (("update", "-q"), ("install", *PACKAGES))
WAY_OUT = "chromium is missing: run `apt-get install chromium` as root"

# Root, as in a container, has no user namespace to build the sandbox from; the rest silences calls home.
LAUNCH_ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium_path() -> str | None:
    return shutil.which(CHROMIUM)


def install() -> None:
    """Install chromium where that is ours to do: as root, with apt-get at hand."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for step in STEPS:
        # Unchecked: an update that fails may leave a list to install from, and only the path counts.
        with suppress(subprocess.TimeoutExpired):
            subprocess.run([apt, *step], env=environment, timeout=INSTALL_TIMEOUT_S)  # noqa: S603


def require_chromium() -> str:
    """The path of chromium, installed if need be; without one a test is skipped, but CI fails."""
    if chromium_path() is None:
        install()
    if path := chromium_path():
        return path
    if os.environ.get("CI"):
        raise RuntimeError(WAY_OUT)
    pytest.skip(WAY_OUT)
