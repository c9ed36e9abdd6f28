from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.program.systemd import tell_ready
from tests.patience import PATIENCE_S


@pytest.fixture(params=["file", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path, settings: Any) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.settimeout(PATIENCE_S)
        if request.param == "file":
            settings.NOTIFY_SOCKET = str(tmp_path / "notify")
            listening.bind(settings.NOTIFY_SOCKET)
        else:
            # The kernel chooses a name that nobody else has.
            listening.bind("")
            settings.NOTIFY_SOCKET = f"@{listening.getsockname()[1:].decode()}"
        yield listening


def test_systemd_hears_that_the_service_is_ready(systemd: socket.socket) -> None:
    tell_ready()

    assert systemd.recv(100) == b"READY=1"


@pytest.mark.parametrize("path", ["", "/nowhere/notify"])
def test_without_systemd_nothing_happens(path: str, settings: Any) -> None:
    settings.NOTIFY_SOCKET = path

    tell_ready()
