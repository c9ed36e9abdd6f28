"""`make image-check`: the image is built by buildah on a base from debootstrap, and started.

buildah's isolation by chroot needs no engine of containers. It shares the network of the machine, and cannot
mount the root file system read-only: what the image's user may write to is looked at instead. This takes some
five minutes, downloads a Debian and all packages, and needs root."""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.patience import PATIENCE_S, START_PATIENCE_S, wait_until
from tests.programs import services
from tests.programs.debian import require_debian
from tests.programs.services import free_port
from tests.reliability.services.processes import ROOT, logged

SUITE = ("bookworm", "http://deb.debian.org/debian")
INSIDE = "python3,python3-venv,ca-certificates"
LARGEST = 480 * 1024 * 1024
"""Of what is put on top of the base. pyarrow is a third of it."""


class Builder:
    def __init__(self, directory: Path) -> None:
        self.program, self.directory = require_debian("buildah"), directory
        self._storage = ("--root", str(directory / "storage"), "--runroot", str(directory / "run"))

    def __call__(self, command: str, *words: str | Path, cwd: Path = ROOT) -> str:
        ran = subprocess.run(
            self.words(command, *words), cwd=cwd, capture_output=True, text=True, timeout=START_PATIENCE_S
        )
        assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]
        return ran.stdout.strip()

    def words(self, command: str, *words: str | Path) -> list[str]:
        return [self.program, *self._storage, "--storage-driver", "vfs", command, *map(str, words)]


@pytest.fixture(scope="session")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    return Builder(tmp_path_factory.mktemp("buildah"))


@pytest.fixture(scope="session")
def base(buildah: Builder) -> str:
    folder, tree = buildah.directory / "base", buildah.directory / "base/tree"
    folder.mkdir()
    command = [require_debian("debootstrap"), "--variant=minbase", f"--include={INSIDE}"]
    subprocess.run([*command, SUITE[0], tree, SUITE[1]], check=True, capture_output=True)
    subprocess.run(["tar", "-C", tree, "-cf", folder / "base.tar", "."], check=True)
    (folder / "Containerfile").write_text("FROM scratch\nADD base.tar /\n")
    subprocess.run(["rm", "-r", "--one-file-system", tree], check=True)
    buildah("bud", "--isolation", "chroot", "--tag", "localhost/base", folder)
    return "localhost/base"


@pytest.fixture(scope="session")
def image(buildah: Builder, base: str) -> str:
    options = ["--isolation", "chroot", "--format", "docker", "--pull-never", "--tag", "localhost/tickwire"]
    # A machine behind a proxy of its own trusts its certificate.
    options += ["--build-arg", f"BASE={base}", "--volume", "/etc/ssl/certs:/etc/ssl/certs:ro"]
    buildah("bud", *options, "--ignorefile", ".dockerignore", "--file", "deploy/Dockerfile", ".")
    return "localhost/tickwire"


@pytest.fixture(scope="session")
def container(buildah: Builder, image: str) -> Iterator[str]:
    name = buildah("from", "--pull-never", image)
    yield name
    buildah("rm", name)


@pytest.fixture(scope="session")
def facts(buildah: Builder, image: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(buildah("inspect", "--type", "image", image))
    return found


def test_it_is_started_as_a_number_and_holds_no_value_of_the_build(facts: dict[str, Any]) -> None:
    config = facts["Docker"]["config"]
    assert config["User"] == "10001:10001"
    assert config["Entrypoint"] == ["tickwire-server"]
    assert config["StopSignal"] == "SIGTERM"
    assert config["Healthcheck"]["Test"] == ["CMD", "python", "/opt/tickwire/ready.py"]
    names = {line.partition("=")[0] for line in config["Env"]}
    assert not names & {"SECRET_KEY", "KEY_PEPPER", "DATABASE_URL", "REDIS_URL", "EMAIL_URL"}


def test_it_is_small_and_its_user_can_write_nowhere_but_to_its_data_and_what_is_temporary(
    buildah: Builder, container: str
) -> None:
    size = buildah("run", "--isolation", "chroot", container, "--", "du", "-sb", "/opt/tickwire")
    assert int(size.split()[0]) < LARGEST
    find = "find / -xdev \\( -type f -o -type d \\) -writable -not -path '/proc/*' -not -path '/sys/*'"
    found = buildah("run", "--isolation", "chroot", container, "--", "sh", "-c", f"{find} 2>/dev/null; true")
    assert set(found.splitlines()) <= {"/var/lib/tickwire", "/tmp", "/var/tmp", "/run/lock", "/dev/shm"}  # noqa: S108


def test_it_migrates_serves_is_healthy_and_stops(buildah: Builder, container: str, tmp_path: Path) -> None:
    port = free_port()
    with services.postgres(tmp_path) as database, services.redis(tmp_path) as redis:
        given = {
            "SECRET_KEY": secrets.token_urlsafe(48),
            "KEY_PEPPER": secrets.token_urlsafe(48),
            "DATABASE_URL": database,
            "REDIS_URL": redis,
            "EMAIL_URL": "dummymail://",
            "ALLOWED_HOSTS": "api.example.com",
            "TRUSTED_PROXIES": "127.0.0.1",
            "DRAIN_S": "1",
            "PORT": str(port),
        }
        options = ["--isolation", "chroot", *(f"--env={name}={value}" for name, value in given.items())]
        buildah("run", *options, container, "--", "tickwire-server", "migrate", "--verbosity", "0")
        log = tmp_path / "serve.log"
        words = buildah.words("run", *options, container, "--", "tickwire-server", "serve")
        with logged(words, log) as process:
            wait_until(lambda: process.poll() is not None or answers(port))
            assert process.poll() is None, log.read_text()
            buildah("run", *options, container, "--", "python", "/opt/tickwire/ready.py")
            headers = {"Host": "api.example.com", "X-Forwarded-Proto": "https"}
            page = httpx.get(f"http://127.0.0.1:{port}/accounts/login/", headers=headers)
            assert page.status_code == 200
    assert "Traceback" not in log.read_text()


def answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=PATIENCE_S).status_code == 200
    except httpx.TransportError:
        return False
