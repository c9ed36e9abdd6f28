"""Packages as somebody else gets them: built, and installed into an environment that holds nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
UV = Path(sys.executable).with_name("uv")
# With what builds it from our own lock, so that nothing is downloaded for that.
BUILD = ("build", "--quiet", "--no-build-isolation", "--python", sys.executable)


def uv(*words: str | Path, cwd: Path = ROOT) -> None:
    ran = subprocess.run([UV, *words], cwd=cwd, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ran.returncode == 0, ran.stderr


def build_wheel(source: Path, folder: Path) -> Path:
    """By way of the source distribution, as a package index would get both."""
    uv(*BUILD, "--out-dir", folder, source)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install_alone(folder: Path, *what: str | Path) -> Path:
    """The folder of its commands. Where it stands has no part in our own environment."""
    uv("venv", "--quiet", "--python", sys.executable, folder)
    uv("pip", "install", "--quiet", "--python", folder / "bin/python", *what)
    return folder / "bin"
