"""What the nightly work says reaches the log of the service."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from archive.folding import nightly
from archive.folding.nightly import NotFolded, run_apart

Program = Callable[[str], int]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Takes what is in the place of `manage.py`."""
    monkeypatch.setattr(nightly, "IS_CHECKOUT", True)
    monkeypatch.setattr(nightly, "ROOT", tmp_path)
    return (tmp_path / "manage.py").write_text


async def test_its_log_is_the_log_of_the_service(
    program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    program("import sys\nsys.stderr.write('INFO Archived\\nWARNING Dropped\\n')\n")
    await run_apart()
    assert capsys.readouterr().err == "INFO Archived\nWARNING Dropped\n"


@pytest.mark.parametrize("ends", ["sys.exit(1)", "sys.exit(3)"])
async def test_its_last_line_is_why_it_failed(
    program: Program, capsys: pytest.CaptureFixture[str], ends: str
) -> None:
    says = "INFO Archived\\nCommandError: The disk is full.\\n"
    program(f"import sys\nsys.stderr.write('{says}')\n{ends}\n")
    with pytest.raises(NotFolded, match=r"^The disk is full\.$"):
        await run_apart()
    assert capsys.readouterr().err == "INFO Archived\n"


async def test_one_that_says_nothing_has_a_reason_too(program: Program) -> None:
    program("raise SystemExit(7)\n")
    with pytest.raises(NotFolded, match="it ended with 7"):
        await run_apart()
