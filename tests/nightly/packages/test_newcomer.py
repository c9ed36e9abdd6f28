"""What is in the wheel, and the newcomer's path on it, from an empty folder; beside its code it writes
nothing."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

from core.version import VERSION
from tests.patience import PATIENCE_S, wait_until
from tests.programs.packages import ROOT
from tests.programs.running import Serve, environment
from tools.lint.modules import ROOMS

from .conftest import files_of, nowhere, typed

PLACES = (*ROOMS, "clients", "docs", "static", "templates")
MADE = {"__pycache__", "node_modules", "dist"}


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as opened:
        return set(opened.namelist())


def test_every_file_of_every_room_is_in_its_one_package(names: set[str]) -> None:
    files = {
        path.relative_to(ROOT).as_posix()
        for place in PLACES
        for path in (ROOT / place).rglob("*")
        if path.is_file() and not MADE & {*path.relative_to(ROOT).parts}
    }
    facts = f"tickwire_server-{VERSION}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"tickwire_server", facts}
    inside = {name.removeprefix("tickwire_server/") for name in names}
    own = {"__init__.py", "__main__.py", "CHANGELOG.md", "LICENSE", "NOTICE"}
    assert {name for name in inside if ".dist-info/" not in name} == files | own


def test_its_facts_are_those_of_the_project(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        folder = f"tickwire_server-{VERSION}.dist-info"
        facts = Parser().parsestr(opened.read(f"{folder}/METADATA").decode())
        commands = opened.read(f"{folder}/entry_points.txt").decode()
    named = (facts["Name"], facts["Version"], facts["License-Expression"])
    assert named == ("tickwire-server", VERSION, "MIT")
    assert facts.get_all("License-File") == ["LICENSE", "NOTICE"]
    assert "tickwire-server = tickwire_server:serve_by_default" in commands


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder, far from the source."""
    return tmp_path_factory.mktemp("newcomer")


@pytest.fixture(scope="module")
def serving(program: Path, home: Path, installed_files: dict[Path, int]) -> Iterator[Serve]:
    serve = Serve(home / "unused", **nowhere(home))
    with serve.as_typed([str(program), "--data", "D"], home) as running:
        yield running


def test_pages_and_files_are_there_and_its_banner_names_commands_that_work(
    serving: Serve, program: Path, home: Path
) -> None:
    with httpx.Client(base_url=serving.url, timeout=PATIENCE_S) as client:
        assert "Tickwire" in client.get("/").raise_for_status().text
        client.get("/static/tickwire.css").raise_for_status()
        client.get("/docs/changelog").raise_for_status()
    wait_until(lambda: "The demo's past is complete" in serving.output)
    assert "Traceback" not in serving.output
    assert "tickwire-server --data D demo-login" in serving.output
    assert "manage.py" not in serving.output
    assert "/demo-login/" in typed(program, home, "--data", "D", "demo-login").stdout


def test_a_key_opens_a_quote_and_a_stream(serving: Serve, program: Path, home: Path) -> None:
    key = typed(program, home, "issue-key", "ada", "--tier", "pro", "--data", "D").stdout.strip()
    assert key.startswith("tw_live_")
    headers = {"X-API-Key": key}
    quote = httpx.get(f"{serving.url}/api/market/BTCUSD/quote", headers=headers, timeout=PATIENCE_S)
    assert quote.raise_for_status().json()["symbol"] == "BTCUSD"
    with connect(f"{serving.url.replace('http', 'ws')}/ws/market", open_timeout=PATIENCE_S) as socket:
        socket.send(json.dumps({"action": "subscribe", "symbols": ["BTCUSD"], "api_key": key}))
        assert json.loads(socket.recv(PATIENCE_S))["type"] == "subscribed"
        assert json.loads(socket.recv(PATIENCE_S))["symbol"] == "BTCUSD"


def test_the_doctor_finds_no_fault(serving: Serve, program: Path, home: Path) -> None:
    ended = typed(program, home, "--data", "D", "doctor", "--url", serving.url, "--silence", "0")
    assert ended.returncode == 0, ended.stdout
    assert f"ok    proxy         {serving.url} is answered by this installation." in ended.stdout
    assert "ok    streams       WebSockets are opened" in ended.stdout


def test_it_stops_in_order_and_all_it_keeps_is_in_its_data_folder(
    program: Path, serving: Serve, home: Path, installed_files: dict[Path, int]
) -> None:
    assert serving.stop() == 0
    assert [path.name for path in home.iterdir() if not path.name.startswith("serve-")] == ["D"]
    assert stat.S_IMODE((home / "D").stat().st_mode) == 0o700
    # The folder of its code may be read-only, as in an image; root, who may run this, could write there.
    assert files_of(program) == installed_files


@pytest.mark.parametrize(
    ("named", "folder"), [("XDG_DATA_HOME", "xdg/tickwire"), ("HOME", "xdg/.local/share/tickwire")]
)
def test_without_data_it_keeps_to_the_rules_of_the_desktop(
    named: str, folder: str, program: Path, tmp_path: Path
) -> None:
    typed(program, tmp_path, "check", **{named: str(tmp_path / "xdg")})
    assert (tmp_path / folder / "secret").exists()


def test_a_file_in_the_place_of_the_folder_is_one_sentence(program: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = typed(program, tmp_path, "check", "--data", "file/below")
    assert (ended.returncode, len(ended.stderr.splitlines())) == (1, 1)
    assert f"{tmp_path / 'file'} is not a folder. Name one with --data or VAR_DIR." in ended.stderr


def test_it_runs_as_a_module_too(program: Path, tmp_path: Path) -> None:
    # Rooms of the same names in the folder of the caller change nothing.
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "__init__.py").write_text("raise SystemExit('somebody else')")
    names = environment(tmp_path, **nowhere(tmp_path))
    command = [str(program.with_name("python")), "-m", "tickwire_server", "--data", "D", "check"]
    ended = subprocess.run(command, cwd=tmp_path, env=os.environ | names, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
