"""What the image is made of, its health check, and the block of an upgrade in docs/operate/install.md with
programs that only note what they are asked. `make image-check` and `make units-check` run both."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.programs.services import free_port
from tests.reliability.services.processes import ROOT

DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text()
LET_IN = {
    line.removeprefix("!").rstrip("/")
    for line in (ROOT / ".dockerignore").read_text().splitlines()
    if line.startswith("!")
}
WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]


def test_everything_that_the_wheel_holds_is_let_in_and_nothing_else() -> None:
    locks = {"requirements-archive.lock", "requirements-dev.lock"}
    needed = {*locks, "README.md", "pyproject.toml", "tickwire_server"}
    assert {*WHEEL["only-include"], *needed, "deploy/ready.py"} == LET_IN
    assert all((ROOT / name).exists() for name in LET_IN)


def test_what_it_installs_is_what_the_tests_ran_with() -> None:
    """The locks are renewed one after the other, so that each holds what the one before it has."""
    plain, archive, dev = (
        set(re.findall(r"^[\w.-]+==\S+", (ROOT / f"requirements{name}.lock").read_text(), re.M))
        for name in ("", "-archive", "-dev")
    )
    assert "-r requirements-archive.lock" in (ROOT / "docs/operate/install.md").read_text()
    assert "--requirement requirements-archive.lock" in DOCKERFILE
    assert plain < archive < dev
    assert {each.partition("==")[0] for each in archive - plain} >= {"pyarrow", "boto3"}


@contextmanager
def answering(status: int) -> Iterator[str]:
    """The port of a service whose /readyz answers this."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/readyz" else 404)
            self.end_headers()
            self.wfile.write(b"its reasons")

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield str(server.server_port)
        finally:
            server.shutdown()
            thread.join()


def is_healthy(*arguments: str, **environment: str) -> bool:
    command = [sys.executable, str(ROOT / "deploy/ready.py"), *arguments]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    assert ran.stdout in ("", "its reasons")
    return ran.returncode == 0


@pytest.fixture(scope="module")
def ready() -> Iterator[str]:
    with answering(200) as port:
        yield port


@pytest.fixture(scope="module")
def unready() -> Iterator[str]:
    with answering(503) as port:
        yield port


def test_port_of_all_workers_speaks_and_not_that_of_any(ready: str, unready: str) -> None:
    assert not is_healthy(METRICS_PORT=unready, PORT=ready)
    assert is_healthy(METRICS_PORT=ready, PORT=unready)


def test_service_without_a_port_for_figures_is_asked_where_it_serves(ready: str, unready: str) -> None:
    for given in ({}, {"METRICS_PORT": ""}, {"METRICS_PORT": "0"}, {"METRICS_PORT": str(free_port())}):
        assert is_healthy(PORT=ready, **given)
        assert not is_healthy(PORT=unready, **given)


def test_port_that_is_named_counts_alone(ready: str, unready: str) -> None:
    assert is_healthy(ready, METRICS_PORT=unready, PORT=unready)
    assert not is_healthy(str(free_port()), METRICS_PORT=ready, PORT=ready)


PAGE = (ROOT / "docs/operate/install.md").read_text()
(BLOCK,) = re.findall(r"```sh\n(VERSION=.*?)```", PAGE, re.DOTALL)
UNITS = (
    "tickwire-engine@1",
    "tickwire-engine@2",
    "tickwire-web@8001",
    "tickwire-web@8002",
    "tickwire-web@8003",
)
LISTED = "".join(f"{unit}.service loaded active running Tickwire\\n" for unit in UNITS)
PROGRAMS = {
    "python3": 'mkdir -p "$3/bin" && ln -sf /bin/true "$3/bin/pip"',
    "systemctl": f"""echo "$@" >> "$NOTES"; case "$1" in list-units) printf '{LISTED}';; esac""",
    "systemd-run": 'for last; do :; done; echo "$@" >> "$NOTES"; exit 1',
}


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder, self.link = folder, folder / "opt/tickwire"
        for each in ("opt/tickwire-old", "etc/systemd/system", "etc/tickwire", "usr/local/sbin", "programs"):
            (folder / each).mkdir(parents=True)
        self.link.symlink_to(folder / "opt/tickwire-old")
        for name, script in PROGRAMS.items():
            path = folder / "programs" / name
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)

    def upgrade(self) -> list[str]:
        """What systemd is asked, when the migration fails."""
        notes = self.folder / "notes"
        block = re.sub(r"(?<![\w.])/(opt|etc|usr)/", rf"{self.folder}/\1/", BLOCK)
        path = ":".join(str(self.folder / each) for each in ("programs", "usr/local/sbin"))
        environment = {
            "PATH": f"{path}:{os.environ['PATH']}",
            "NOTES": str(notes),
            "EMAIL_URL": "dummymail://",
        }
        ran = subprocess.run(
            ["sh", "-c", block], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert ran.stderr == ""
        return notes.read_text().splitlines()


def test_old_version_stays_where_the_database_cannot_be_migrated(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    asked = machine.upgrade()

    assert machine.link.readlink().name == "tickwire-old"
    assert asked[-1].endswith("/bin/tickwire-server migrate --no-input")
    assert not any("restart" in each for each in asked)
