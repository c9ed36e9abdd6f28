"""How the program is called, and what it tells those who started it."""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from accounts.models import User
from core.process import feed_watchdog, tell_ready
from core.program import EvenUnread, NoFolder, command, operator, take_data_folder
from tests.patience import PATIENCE_S


@pytest.mark.parametrize(
    ("called", "words", "typed"),
    [
        (["manage.py", "serve"], "issue_key ME", "manage.py issue_key ME"),
        (["manage.py", "--data", "D", "serve"], "issue_key ME", "manage.py --data D issue_key ME"),
        (["/usr/bin/tickwire-server"], "issue_key ME", "tickwire-server issue-key ME"),
        (["/usr/bin/tickwire-server"], "run_engine", "tickwire-server engine"),
        (["/x/tickwire_server/__main__.py"], "migrate", "tickwire-server migrate"),
        (["/usr/bin/tickwire-server", "--data=a b"], "migrate", "tickwire-server --data 'a b' migrate"),
    ],
)
def test_a_command_is_typed_as_this_program_was(
    monkeypatch: pytest.MonkeyPatch, called: list[str], words: str, typed: str
) -> None:
    monkeypatch.setattr(sys, "argv", called)
    assert command(words).removeprefix(".venv/bin/python ").removeprefix("python ") == typed


def test_without_a_path_uvx_is_part_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["tickwire-server"])
    monkeypatch.setattr(sys, "prefix", "/home/ada/.cache/uv/archive-v0/Xy12")
    assert command("migrate") == "uvx tickwire-server migrate"


@pytest.mark.parametrize(
    ("words", "folder", "others"),
    [
        (["serve"], "", ["serve"]),
        (["--data", "D", "serve", "--port", "1"], "D", ["serve", "--port", "1"]),
        (["serve", "--port", "1", "--data=D"], "D", ["serve", "--port", "1"]),
    ],
)
def test_the_data_folder_stands_anywhere(words: list[str], folder: str, others: list[str]) -> None:
    assert take_data_folder(words) == (folder, others)


@pytest.mark.parametrize("words", [["--data"], ["serve", "--data="], ["--data", "A", "--data", "B"]])
def test_no_folder_or_two_are_refused(words: list[str]) -> None:
    with pytest.raises(NoFolder, match="takes one folder"):
        take_data_folder(words)


@pytest.mark.django_db
def test_operator_is_called_as_no_user_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    assert operator() == "ada (operator)"
    with pytest.raises(ValidationError, match="username"):
        User(username=operator(), password="!").clean_fields()  # noqa: S106 - no password

    def unknown() -> str:
        """As in the image, whose user is a number."""
        raise KeyError("getpwuid(): uid not found: 10001")

    monkeypatch.setattr(getpass, "getuser", unknown)
    assert operator() == f"{os.getuid()} (operator)"


@pytest.fixture(params=["file", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path, settings: Any) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.settimeout(PATIENCE_S)
        # The kernel chooses a name that nobody else has.
        listening.bind(str(tmp_path / "notify") if request.param == "file" else "")
        name = listening.getsockname()
        settings.NOTIFY_SOCKET = name if request.param == "file" else f"@{name[1:].decode()}"
        yield listening


def test_systemd_hears_that_the_service_is_ready(systemd: socket.socket) -> None:
    tell_ready()
    assert systemd.recv(100) == b"READY=1"


async def test_systemd_is_asked_for_a_watchdog_and_hears_from_the_loop(systemd: socket.socket) -> None:
    feeding = asyncio.create_task(feed_watchdog(0.04))
    heard = [await asyncio.to_thread(systemd.recv, 100) for _ in range(4)]
    feeding.cancel()
    assert heard == [b"WATCHDOG_USEC=40000", *[b"WATCHDOG=1"] * 3]


@pytest.mark.parametrize("path", ["", "/nowhere/notify"])
def test_without_systemd_nothing_happens(path: str, settings: Any) -> None:
    settings.NOTIFY_SOCKET = path
    tell_ready()


def test_what_goes_on_without_a_reader_is_written_at_once_where_there_is_one(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as out:
        print("Ready.", file=EvenUnread(out), flush=True)  # noqa: T201
        assert (tmp_path / "out").read_text() == "Ready.\n"
