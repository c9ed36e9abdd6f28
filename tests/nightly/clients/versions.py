"""The Python client's streams on the oldest and on the newest `websockets` that it claims to work with."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

UV = Path(sys.executable).with_name("uv")
STREAMS = ("test_python.py", "test_python_tls.py", "test_returning.py")
PYTEST = ("-m", "pytest", "-q", "-n", "2", "-k", "not typescript and not terminal")
OFFLINE = "websockets could not be installed. Is the package index reachable? Then try again.\n"


def claimed() -> str:
    with open("clients/python/pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    (claim,) = (each for each in project["dependencies"] if each.startswith("websockets"))
    return str(claim)


def install(claim: str, resolution: str, folder: str) -> None:
    """Into a folder that stands before the environment's own packages."""
    options = ("--quiet", "--no-deps", "--resolution", resolution, "--target", folder)
    ran = subprocess.run([UV, "pip", "install", "--python", sys.executable, *options, claim], check=False)
    if ran.returncode:
        sys.exit(OFFLINE)


def run(folder: str) -> None:
    environment = os.environ | {"PYTHONPATH": folder}
    asked = [sys.executable, "-c", "import websockets; print(websockets.__file__, websockets.__version__)"]
    place, version = subprocess.check_output(asked, env=environment, text=True).split()
    if not Path(place).is_relative_to(folder):
        sys.exit(f"{place} is used, and not what was installed into {folder}.")
    print(f"websockets {version}", flush=True)  # noqa: T201 - this is a command
    tests = [f"tests/clients/{name}" for name in STREAMS]
    ran = subprocess.run([sys.executable, *PYTEST, *tests], env=environment, check=False)
    if ran.returncode:
        sys.exit(f"The client does not work with websockets {version}, though it claims {claimed()}.")


def main() -> None:
    for resolution in ("lowest", "highest"):
        with tempfile.TemporaryDirectory() as folder:
            install(claimed(), resolution, folder)
            run(folder)


if __name__ == "__main__":
    main()
