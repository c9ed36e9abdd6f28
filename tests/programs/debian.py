"""Programs that tests take from Debian: installed where that is ours to do, as root with apt-get at hand."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

UPDATE_WITHIN_S, INSTALL_WITHIN_S = 600, 600
INSTALL = ("install", "-q", "-y", "-o", "DPkg::Lock::Timeout=240", "--no-install-recommends")
# Where Debian puts servers, which only root has in its PATH.
SERVERS = "/usr/sbin:/sbin"
# Kept for the next clone, too.
UNPACKED = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tickwire/debian"
# Debian starts what it installs as a service; at run level 1 it does not, and no port is taken.
SETTINGS = {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}


def require_debian(program: str, package: str = "") -> str:
    """The path of a program, installed if need be; without it a test is skipped, but CI fails."""
    package = package or program
    if find(program) is None:
        install(program, package)
    if path := find(program):
        return path
    way_out = f"{program} is missing: run `apt-get install {package}` as root"
    if os.environ.get("CI"):
        raise RuntimeError(way_out)
    pytest.skip(way_out)


def find(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:{SERVERS}")


@cache
def install(program: str, package: str) -> None:
    """Once, whether it succeeds or not: what cannot be had is not waited for by every test."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return
    with one_at_a_time():
        # Another test process may have come first.
        if find(program) is None:
            run(apt, "update", "-q", within_s=UPDATE_WITHIN_S)
            run(apt, *INSTALL, package, within_s=INSTALL_WITHIN_S)


def versions_of(package: str) -> list[str]:
    """What is to be had, the oldest first; none without apt."""
    if shutil.which("apt-cache") is None:
        return []
    lines = output("apt-cache", "madison", package).splitlines()
    return output("sort", "-Vu", given="\n".join(line.split("|")[1].strip() for line in lines)).split()


def unpacked(version: str, *packages: str) -> Path:
    """A folder with packages of a version, beside the one that is installed, whose libraries serve both."""
    folder = UNPACKED / f"{'+'.join(packages)}-{version}"
    with one_at_a_time():
        if not folder.exists():
            UNPACKED.mkdir(parents=True, exist_ok=True)
            half = Path(tempfile.mkdtemp(dir=UNPACKED, prefix="half-"))
            output("apt-get", "download", "-q", *(f"{package}={version}" for package in packages), cwd=half)
            for archive in half.glob("*.deb"):
                output("dpkg", "-x", str(archive), str(half))
                archive.unlink()
            half.rename(folder)
    return folder


def output(*command: str, given: str = "", cwd: Path | None = None) -> str:
    return subprocess.run(
        command, input=given, cwd=cwd, check=True, text=True, stdout=subprocess.PIPE, timeout=INSTALL_WITHIN_S
    ).stdout


def run(*command: str, within_s: float) -> None:
    # Unchecked: an update that fails may leave a list to install from, and only the program counts.
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(command, env=os.environ | SETTINGS, timeout=within_s, stdin=subprocess.DEVNULL)


@contextmanager
def one_at_a_time() -> Iterator[None]:
    with (Path(tempfile.gettempdir()) / "tickwire-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
