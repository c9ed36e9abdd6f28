"""`tickwire candles` of a span, as a person types it: into a pipe, into a file, on a terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S, wait_until

from .keeping import BUSY, CUT_SHORT, Keeper, as_csv, keeping, make_candles

pytestmark = pytest.mark.served

SPAN = ("candles", "EURUSD", "1m", "--csv", "--start", "2025-11-20", "--end", "2025-12-20")
Begin = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    with keeping(Keeper(make_candles(25_000))) as kept:
        yield kept


@pytest.fixture
def begin(keeper: Keeper) -> Begin:
    own = {"TICKWIRE_URL": keeper.url, "TICKWIRE_KEY": "tw_live_any", "PYTHONPATH": "clients/python"}

    def start(*words: str, **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tickwire", *words]
        piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        # What runs in the background of a shell ignores Ctrl-C, and so would this one.
        hears = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        return subprocess.Popen(command, env=os.environ | own, text=True, preexec_fn=hears, **piped)

    return start


def said(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    output, errors = process.communicate(timeout=PATIENCE_S)
    return process.returncode, output or "", errors or ""


def test_span_is_written_into_a_pipe_as_csv_or_as_the_last_candles_are(keeper: Keeper, begin: Begin) -> None:
    assert said(begin(*SPAN)) == (0, as_csv(keeper.candles), "")
    assert [request.query.get("limit") for request in keeper.asked] == ["10000"] * 3
    del keeper.candles[2:]
    code, output, _ = said(begin("candles", "EURUSD", "1m", "--start", "2025-11-20"))
    assert (code, output.replace("  ", ",")) == (0, as_csv(keeper.candles).partition("\n")[2])
    keeper.candles.clear()
    assert said(begin(*SPAN)) == (0, "time,open,high,low,close,volume\n", "")


def test_file_is_whole_after_whatever_happened(keeper: Keeper, begin: Begin, tmp_path: Path) -> None:
    keeper.mishaps = {1: CUT_SHORT, 2: BUSY}
    file = tmp_path / "candles.csv"
    assert said(begin(*SPAN, "--output", str(file))) == (0, "", "")
    assert file.read_text() == as_csv(keeper.candles)


def test_file_that_is_there_is_not_written_over_and_none_is_left_by_a_refusal(
    begin: Begin, tmp_path: Path
) -> None:
    file = tmp_path / "candles.csv"
    file.write_text("precious")
    code, _, errors = said(begin(*SPAN, "--output", str(file)))
    assert (code, file.read_text()) == (1, "precious")
    assert "already exists: add --resume" in errors
    code, _, errors = said(begin(*SPAN, "--output", str(file), "--resume"))
    assert (code, "is not a file of candles" in errors, file.read_text()) == (1, True, "precious")
    file = tmp_path / "other.csv"
    code, _, errors = said(begin("candles", "NOPE", "1m", "--output", str(file)))
    assert (code, errors, file.exists()) == (1, "not_found.\n", False)
    code, _, errors = said(begin(*SPAN, "--output", str(tmp_path / "nowhere/candles.csv")))
    assert (code, errors.count("\n")) == (1, 1)
    assert "No such file or directory" in errors


@pytest.mark.parametrize("kept", [0, 10, 35, 900, 1_000, 31_000])
def test_resumed_file_is_as_if_it_was_never_stopped(
    keeper: Keeper, begin: Begin, tmp_path: Path, kept: int
) -> None:
    file = tmp_path / "candles.csv"
    file.write_text(as_csv(keeper.candles)[:kept])
    assert said(begin(*SPAN, "--output", str(file), "--resume")) == (0, "", "")
    assert file.read_text() == as_csv(keeper.candles)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--resume",), "name that file with --output"),
        (("--start", "2025-11-20", "--bars", "5"), "cannot be used with --start"),
        (("--start", "yesterday"), "yesterday is not a time: write 2026-11-01"),
    ],
)
def test_words_that_do_not_go_together_are_refused(
    begin: Begin, words: tuple[str, ...], sentence: str
) -> None:
    code, _, errors = said(begin("candles", "EURUSD", *words))
    assert code > 0
    assert sentence in errors


def test_export_that_cannot_go_on_says_why_and_how(keeper: Keeper, begin: Begin, tmp_path: Path) -> None:
    file = tmp_path / "candles.csv"
    keeper.mishaps = {1: BUSY._replace(retry_after=3_600)}
    code, _, errors = said(begin(*SPAN, "--output", str(file)))
    hint = f"Stopped. To continue where {file} ends, repeat the command with --resume."
    assert (code, errors) == (1, f"{hint}\nrate_limit_exceeded.\n")
    assert file.read_text() == as_csv(keeper.candles[:10_000])


def test_reader_that_has_enough_ends_it_without_a_word(begin: Begin) -> None:
    process = begin(*SPAN)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr:
        assert process.stderr.read() == ""
    assert process.wait(PATIENCE_S) == 0


class Terminal:
    """What a program's standard error is; what it drew is read from the other side."""

    def __init__(self) -> None:
        self._ours, self.its = pty.openpty()
        self.drawn = ""

    def read_to_its_end(self) -> str:
        os.close(self.its)
        try:
            while part := os.read(self._ours, 65_536):
                self.drawn += part.decode()
        except OSError:
            # How Linux says that nobody holds the other side any more.
            pass
        finally:
            os.close(self._ours)
        return self.drawn

    def wait_for(self, text: str) -> None:
        while text not in self.drawn:
            self.drawn += os.read(self._ours, 65_536).decode()


def test_terminal_shows_how_far_it_is(keeper: Keeper, begin: Begin, tmp_path: Path) -> None:
    terminal = Terminal()
    process = begin(*SPAN, "--output", str(tmp_path / "candles.csv"), stderr=terminal.its)
    assert process.wait(PATIENCE_S) == 0
    assert process.stdout is not None
    process.stdout.close()
    lines = terminal.read_to_its_end().removesuffix("\r\n").split("\r\033[K")
    assert lines.pop(0) == ""
    shares = [int(line.partition("%")[0].split()[-1]) for line in lines]
    assert (len(shares), shares[-1]) == (4, 100)
    assert shares == sorted(shares)
    assert shares[2] < 100
    assert lines[-1].startswith("EURUSD 1m  ██")
    assert "25,000 bars" in lines[-1]


def test_interrupted_export_says_how_to_go_on(keeper: Keeper, begin: Begin, tmp_path: Path) -> None:
    file, terminal = tmp_path / "candles.csv", Terminal()
    keeper.mishaps = {1: BUSY._replace(retry_after=60)}
    process = begin(*SPAN, "--output", str(file), stderr=terminal.its)
    terminal.wait_for("10,000 bars")
    wait_until(lambda: len(keeper.asked) == 2)
    process.send_signal(signal.SIGINT)
    code = process.wait(PATIENCE_S)
    assert process.stdout is not None
    process.stdout.close()
    drawn = terminal.read_to_its_end()
    assert code == 130, drawn
    assert drawn.endswith(
        f"\r\nStopped. To continue where {file} ends, repeat the command with --resume.\r\n"
    )
    assert file.read_text() == as_csv(keeper.candles[:10_000])
