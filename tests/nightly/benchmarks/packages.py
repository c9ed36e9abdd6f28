"""Debian's packages that a benchmark needs: installed where that may be done, otherwise named."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def provide(needed: Mapping[str, str]) -> list[str]:
    """Returns what could not be had of packages, each with what shows that it is there."""
    if (missing := absent(needed)) and os.geteuid() == 0:
        environment = {"DEBIAN_FRONTEND": "noninteractive"}
        run("apt-get", "update", "-qq", environment=environment)
        options = ("-y", "-qq", "--no-install-recommends")
        run("apt-get", "install", *options, *missing, environment=environment)
    return absent(needed)


def absent(needed: Mapping[str, str]) -> list[str]:
    return [package for package, sign in needed.items() if not is_there(sign)]


def is_there(sign: str) -> bool:
    return Path(sign).exists() if sign.startswith("/") else shutil.which(sign) is not None


def run(*command: str, environment: dict[str, str] | None = None) -> None:
    """What fails is said, and the peers that miss it are named in the table."""
    done = subprocess.run(command, env=os.environ | (environment or {}), capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(f"{' '.join(command)} failed:\n{done.stdout[-500:]}{done.stderr[-1500:]}\n")
