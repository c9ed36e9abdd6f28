"""The clients that this service gives away are whole, and installed as the page says."""

from __future__ import annotations

import io
import re
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from pages.documents.packages import tarball_name, wheel_name
from tests.client import Server
from tests.patience import PATIENCE_S
from tests.programs.packages import UV, install_alone

SOURCES = Path("clients/python/tickwire")


def test_wheel_holds_every_module_and_a_record_of_each() -> None:
    answer = Client().get(f"/clients/{wheel_name()}")
    assert answer.status_code == 200
    with zipfile.ZipFile(io.BytesIO(answer.content)) as opened:
        names = opened.namelist()
        record = opened.read(next(name for name in names if name.endswith("RECORD"))).decode()
    modules = {path.relative_to(SOURCES.parent).as_posix() for path in SOURCES.rglob("*.py")}
    assert modules <= set(names)
    assert [line.split(",")[0] for line in record.splitlines()] == names


def test_wheel_is_installed_by_its_address(server: Server, tmp_path: Path) -> None:
    commands = install_alone(tmp_path / "environment", "--no-deps", f"{server.url}/clients/{wheel_name()}")
    shown: list[str | Path] = [UV, "pip", "show", "--python", commands / "python", "tickwire"]
    facts = subprocess.run(shown, capture_output=True, text=True, timeout=PATIENCE_S).stdout
    assert "Name: tickwire" in facts
    assert "Requires: httpx, websockets" in facts
    assert (commands / "tickwire").exists()


def test_tarball_is_installed_by_an_address_that_stays(server: Server, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"type": "module"}')
    quiet = ("--no-audit", "--no-fund", "--loglevel=error")
    for words in (
        ["npm", "install", *quiet, f"{server.url}/clients/typescript"],
        ["node", "--eval", 'import("tickwire").then(({ Tickwire }) => console.log(Tickwire.name))'],
    ):
        ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S)
        assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "Tickwire\n"
    package = tmp_path / "node_modules/tickwire"
    assert (package / "dist/index.d.ts").exists()
    assert (package / "schema.d.ts").exists()
    assert Client().get("/clients/pyproject.toml").status_code == 404


@pytest.mark.parametrize(("stable", "current"), [("python", wheel_name), ("typescript", tarball_name)])
def test_address_without_a_version_leads_to_the_current_package(
    stable: str, current: Callable[[], str]
) -> None:
    assert Client().get(f"/clients/{stable}").headers["Location"] == f"/clients/{current()}"


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/docs", "/docs/clients", "/llms.txt"])
def test_pages_name_the_package_of_this_service(path: str) -> None:
    assert f"http://testserver/clients/{wheel_name()}" in re.sub(r"<[^>]+>", "", Client().get(path).text)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "name", ["guides/start", "guides/streams", "signals", "ingest", "archive-rest", "data"]
)
def test_guides_name_the_service_that_is_read(name: str) -> None:
    page = Client().get(f"/docs/{name}", headers={"Host": "testserver"}).text
    assert "127.0.0.1:8000" not in page
    assert "://testserver" in re.sub(r"<[^>]+>", "", page)
