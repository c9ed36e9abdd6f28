"""What operators see of the archive: its command, its figures and the doctor's words."""

from __future__ import annotations

import errno
import fcntl
import logging
import shutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest
import time_machine
from django.core.management import call_command
from django.core.management.base import CommandError
from pytest_django import Settings

from archive.folding import fold
from archive.folding.fold import NotFolded, run_apart
from archive.journal import TickJournalWriter
from archive.keeper import archive_metrics, keeper
from archive.management.commands.fold_archive import NICE, Command
from archive.stores import DiskStore
from operations.doctor.checks import check_archive
from tests.archive.keeping import DAY_MS, NIGHT, KeptEngine, journal_of, store_of, tick, write
from tests.factories import make_instrument

pytestmark = pytest.mark.django_db


def keep_a_tick(folder: Path) -> None:
    write(folder, tick(1, DAY_MS + 1), began=None)


@pytest.fixture
def due(folder: Path, eurusd: object, clock: time_machine.Traveller) -> Path:
    """The night after a day with a tick."""
    keep_a_tick(folder)
    clock.move_to(NIGHT)
    return folder


def run() -> str:
    out = StringIO()
    call_command("fold_archive", stdout=out)
    return out.getvalue().strip()


def test_the_command_makes_the_files_of_days_that_are_over(
    folder: Path, eurusd: object, clock: time_machine.Traveller
) -> None:
    keep_a_tick(folder)
    assert run() == "There was nothing to archive."
    clock.move_to(NIGHT)
    assert run() == "Archived 2026-11-18."
    assert store_of(folder).listing("manifests/") == ["manifests/2026-11-18.json"]


def test_only_a_process_of_its_own_steps_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stepped_back: list[int] = []
    monkeypatch.setattr("os.nice", stepped_back.append)
    run()
    assert stepped_back == []

    def forbid(niceness: int) -> None:
        stepped_back.append(niceness)
        raise PermissionError

    monkeypatch.setattr("os.nice", forbid)
    with pytest.raises(SystemExit):
        Command().run_from_argv(["manage.py", "fold_archive", "--help"])
    assert stepped_back == [NICE]


def test_the_command_says_why_it_does_nothing(folder: Path, settings: Settings) -> None:
    keep_a_tick(folder)
    with journal_of(folder).path.joinpath("folding.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(CommandError, match="Another process makes these files"):
            run()
    settings.ARCHIVE = False
    with pytest.raises(CommandError, match="ARCHIVE=0"):
        run()


def test_a_full_disk_is_said_with_its_places(due: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(store: DiskStore, path: str, local: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(DiskStore, "put", refuse)
    with pytest.raises(CommandError) as raised:
        run()
    assert str(raised.value) == (
        f"The files cannot be written to {due / 'var' / 'ticks'} or {due / 'archive'}: "
        "No space left on device. The journal stays."
    )
    assert len(journal_of(due).segments()) == 1


@pytest.mark.parametrize("path", ["manifests/2026-11-18.json", "ticks/EURUSD/2026-11-18.parquet", ""])
def test_what_is_stored_and_damaged_is_named(due: Path, path: str) -> None:
    damaged = due / "archive" / path
    damaged.parent.mkdir(parents=True, exist_ok=True)
    damaged.write_bytes(b"{")
    says = f"{path} is stored already and cannot be used.*" if path else ""
    with pytest.raises(CommandError, match=f"{says}The journal stays"):
        run()
    assert len(journal_of(due).segments()) == 1


@pytest.mark.parametrize("command", ["fold_archive", "verify_archive", "export_archive"])
def test_commands_say_what_a_bucket_lacks(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    settings.ARCHIVE, settings.ARCHIVE_S3_URL = True, ("bucket", "")
    monkeypatch.setitem(sys.modules, "boto3", None)
    arguments = [str(tmp_path / "copy")] if command == "export_archive" else []
    with pytest.raises(CommandError, match="needs boto3"):
        call_command(command, *arguments)


def figures() -> dict[str, float]:
    return {sample.name: sample.value for metric in archive_metrics.collect() for sample in metric.samples}


def test_figures_say_whether_ticks_are_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert figures() == {}
    writer = TickJournalWriter(journal_of(folder), "bid", {}, DAY_MS)
    monkeypatch.setattr(keeper, "writer", writer)
    writer.write([("epoch", [tick(1, DAY_MS + 1)])])
    counts = {"keeps": 1, "folds": 1, "records_total": 1, "lost_total": 0}
    assert figures() == {f"tickwire_archive_{name}": value for name, value in counts.items()}
    writer.fault = "the disk is full"
    assert figures()["tickwire_archive_keeps"] == 0
    writer.close()


def test_the_doctor_says_what_is_archived(folder: Path, settings: Settings) -> None:
    def says() -> tuple[str, str]:
        (found,) = check_archive()
        return found.level, found.says

    assert says() == ("ok", "No instrument has real prices, so there is nothing to archive.")
    make_instrument(source="kraken")
    assert says() == ("ok", "Ticks are archived; 0 days have their files.")
    keep_a_tick(folder)
    with time_machine.travel(datetime(2026, 11, 25, tzinfo=UTC)):
        assert says() == ("warn", "The files of 2026-11-18 are not made yet.")
    settings.ARCHIVE = False
    assert says() == ("warn", "ARCHIVE=0, and ticks since 2026-11-18 wait to be made into files.")
    shutil.rmtree(journal_of(folder).path)
    assert says() == ("ok", "Ticks are not archived: ARCHIVE=0.")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("demo", "level"), [(True, logging.INFO), (False, logging.WARNING)])
async def test_newcomer_to_the_demo_is_not_warned_that_pyarrow_is_missing(
    folder: Path,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    demo: bool,
    level: int,
) -> None:
    settings.DEMO = demo
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with caplog.at_level(logging.INFO, "archive.keeper"):
        async with KeptEngine(folder):
            pass
    levels = [record.levelno for record in caplog.records if "Ticks are not archived" in record.message]
    assert levels == [level]


# What the nightly work says reaches the log of the service.
Program = Callable[[str], int]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Takes what is in the place of `manage.py`."""
    monkeypatch.setattr(fold, "IS_CHECKOUT", True)
    monkeypatch.setattr(fold, "ROOT", tmp_path)
    return (tmp_path / "manage.py").write_text


async def test_its_log_is_the_log_of_the_service(
    program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    program("import sys\nsys.stderr.write('INFO Archived\\nWARNING Dropped\\n')\n")
    await run_apart()
    assert capsys.readouterr().err == "INFO Archived\nWARNING Dropped\n"


@pytest.mark.parametrize(
    ("says", "status", "reason"),
    [
        *((r"INFO Archived\nCommandError: Full.\n", status, r"^Full\.$") for status in (1, 3)),
        ("", 7, "it ended with 7"),
    ],
)
async def test_its_last_line_is_why_it_failed(
    program: Program, capsys: pytest.CaptureFixture[str], says: str, status: int, reason: str
) -> None:
    program(f"import sys\nsys.stderr.write('{says}')\nsys.exit({status})\n")
    with pytest.raises(NotFolded, match=reason):
        await run_apart()
    assert capsys.readouterr().err == ("INFO Archived\n" if says else "")
