"""The command `witness`, as a process: a log built on Go's packages is cosigned by it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.patience import PATIENCE_S, wait_until
from tests.programs.commands import manage
from tests.programs.running import environment
from tests.programs.services import free_port
from transparency.checkpoints import Checkpoint, Note, read_hash
from transparency.keys import VerifierKey
from transparency.witness import KEY, STATE

from . import naive
from .foreign_log import ForeignLog, foreign_log

pytestmark = pytest.mark.served
ORIGIN = "log.example/ledger"


@contextmanager
def running(var_dir: Path, **settings: str) -> Iterator[str]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "manage.py", "witness", "--port", str(port)]
    with subprocess.Popen(command, env=environment(var_dir, **settings), text=True) as process:
        try:
            wait_until(lambda: process.poll() is not None or answers(url))
            assert process.poll() is None
            yield url
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=PATIENCE_S).is_success
    except httpx.TransportError:
        return False


class GoLog:
    def __init__(self, go: ForeignLog) -> None:
        self._go = go
        made = go.get("make key", Name=ORIGIN)
        self.key, self._secret = made["Key"], made["Secret"]

    def offer(self, old: int, size: int) -> str:
        texts = [each.decode() for each in naive.entries_of(size)]
        proof = self._go.get("grow", Entries=texts, Old=old).get("Proof", []) if 0 < old < size else []
        hashes = "".join(f"{each}\n" for each in proof)
        return f"old {old}\n{hashes}\n{self.checkpoint(size)}"

    def checkpoint(self, size: int) -> str:
        root = self._go.get("grow", Entries=[each.decode() for each in naive.entries_of(size)])["Roots"][-1]
        text = str(Checkpoint(ORIGIN, size, read_hash(root)))
        note: str = self._go.get("sign", Text=text, Secrets=[self._secret])["Text"]
        return note


def test_log_of_go_is_followed_over_restarts_and_refused_without_the_state(tmp_path: Path) -> None:
    with foreign_log(tmp_path) as go:
        log, data, file = GoLog(go), tmp_path / "data", tmp_path / "checkpoint"
        assert manage(data, "witness").returncode == 1
        settings = {"WITNESS_NAME": "witness.example", "WITNESSED_LOGS": log.key}
        file.write_text(log.checkpoint(5))
        with running(data, **settings) as url:
            key = VerifierKey.read(httpx.get(url, timeout=PATIENCE_S).text.strip())
            assert post(url, log.offer(0, 5)).status_code == 403
            accepted = manage(data, "witness", "--accept", ORIGIN, str(file), **settings)
            assert accepted.returncode == 0, accepted.stderr
            cosigned = post(url, log.offer(5, 9))
            assert cosigned.status_code == 200
            note = Note.read((log.checkpoint(9) + cosigned.text).encode())
            assert set(note.signed_by([key])) == {key}
            opened = go.get("open", Note=str(note), Keys=[log.key, str(key)])
            assert opened["Signers"] == [ORIGIN, "witness.example"]
        assert os.stat(data / KEY).st_mode & 0o77 == 0
        with running(data, **settings) as url:
            assert VerifierKey.read(httpx.get(url, timeout=PATIENCE_S).text.strip()) == key
            known = post(url, log.offer(5, 12))
            assert (known.status_code, known.text) == (409, "9\n")
            assert known.headers["Content-Type"] == "text/x.tlog.size"
            (data / STATE).unlink()
            assert post(url, log.offer(9, 12)).status_code == 403
            assert post(url, "old 9\n" * 20_000).status_code == 413
            assert httpx.get(f"{url}/add-checkpoint", timeout=PATIENCE_S).status_code == 405
            assert httpx.get(f"{url}/elsewhere", timeout=PATIENCE_S).status_code == 404


def post(url: str, offer: str) -> httpx.Response:
    return httpx.post(f"{url}/add-checkpoint", content=offer.encode(), timeout=PATIENCE_S)
