"""What the doctor says of the folder, the files and the clock of a machine. The kernel and other machines
cannot be set wrong here; `test_command.py` moves our own clock."""

from __future__ import annotations

import os
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from market.models import EngineState
from market.store import own_name
from operations.doctor.checks import check_folder, check_mail
from operations.doctor.database import check_engine_clock, clock_state, compare, judge
from operations.doctor.proxy import check_static_files, judge_descriptors
from signals_feed.decisions import SOON_S
from tests.factories import NOON
from tests.patience import PATIENCE_S
from tests.programs.mail_server import mail_server
from tests.programs.services import free_port

from .diagnoses import faults, only_fault


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "var"
    made.mkdir(mode=0o700)
    return made


def test_a_folder_in_order_has_no_fault_and_nothing_is_made(folder: Path) -> None:
    assert faults(check_folder(folder)) == []
    later = folder / "later"
    assert only_fault(check_folder(later)) == ("warn", f"{later} is not there yet.")
    assert list(folder.iterdir()) == []


def test_a_file_in_its_place_is_a_fault(folder: Path) -> None:
    (folder / "file").touch()
    for place in ("file", "file/below"):
        level, says = only_fault(check_folder(folder / place))
        assert (level, str(folder / "file") in says) == ("fail", True)


@pytest.mark.parametrize("name", ["", "secret", "tickwire.sqlite3"])
def test_what_others_may_read_is_named(folder: Path, name: str) -> None:
    path = folder / name
    if name:
        path.touch()
    path.chmod(0o755)
    assert only_fault(check_folder(folder)) == (
        "warn",
        f"Other users may read what should be private: {path}.",
    )


@pytest.mark.parametrize(
    ("megabytes", "level", "says"),
    [
        (300, "warn", "has 300 MB of free space"),
        (50, "fail", "has 50 MB of free space"),
        (0, "fail", "no space left on device"),
    ],
)
def test_a_disk_that_fills_up_is_told(megabytes: int, level: str, says: str, tmp_path: Path) -> None:
    if os.geteuid() and not os.environ.get("CI"):
        pytest.skip("Only root may mount a small disk; CI does.")
    size = f"size={megabytes * 1_000_000 or 4096}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"{size},mode=700", "tmpfs", tmp_path], check=True)
    try:
        if not megabytes:
            (tmp_path / "full").write_bytes(b"0" * 4096)
        found = only_fault(check_folder(tmp_path))
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert found[0] == level
    assert says in found[1]


def test_static_files_of_production_that_are_missing_are_told(settings: Settings, tmp_path: Path) -> None:
    settings.STATIC_ROOT = tmp_path / "static"
    assert faults(check_static_files()) == []
    settings.PRODUCTION = True
    level, says = only_fault(check_static_files())
    assert level == "warn"
    assert str(tmp_path / "static") in says


@pytest.mark.parametrize(("most", "levels"), [(200, ["fail"]), (2_000, ["warn"]), (4_096, [])])
def test_too_few_open_files_of_the_service_are_told(most: int, levels: list[str]) -> None:
    assert [level for level, says in faults([judge_descriptors(most)]) if f"{most:,} files" in says] == levels


KEPT, ALONE, UNKNOWN = 0, 5, -1


@pytest.mark.parametrize(("state", "level"), [(KEPT, "ok"), (ALONE, "warn"), (UNKNOWN, "warn")])
def test_a_clock_that_nobody_keeps_right_is_told(state: int, level: str) -> None:
    assert judge(state).level == level


def test_the_kernel_is_asked() -> None:
    assert clock_state() in range(6)


@pytest.mark.parametrize(
    ("theirs", "answered_at", "level"),
    [
        (1000.0, 1000.0, "ok"),
        (1000.4, 1000.0, "ok"),
        (1001.0, 1000.0, "warn"),
        (994.0, 1000.0, "fail"),
        # A slow answer says nothing about the clock.
        (1002.0, 1004.0, "ok"),
        (1003.9, 1004.0, "ok"),
    ],
)
def test_clocks_that_differ_are_told(theirs: float, answered_at: float, level: str) -> None:
    assert compare("redis", "Redis", theirs, 1000.0, answered_at).level == level


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("off_s", "levels"),
    [(0.4, ["ok"]), (-1, ["warn"]), (SOON_S + 0.1, ["fail"]), (-SOON_S - 0.1, ["fail"]), (None, [])],
)
def test_an_engine_whose_clock_is_not_the_databases_is_told(off_s: float | None, levels: list[str]) -> None:
    clock_at = None if off_s is None else NOON + timedelta(seconds=off_s)
    EngineState.objects.create(pk=1, writer=own_name(), beat_at=NOON, clock_at=clock_at)
    assert [each.level for each in check_engine_clock()] == levels


# The mail server.
@pytest.fixture(autouse=True)
def _smtp(settings: Settings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_TIMEOUT = "127.0.0.1", PATIENCE_S
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
    settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = "user", "password"


def test_a_login_is_tried_and_a_mail_sent_where_somebody_says_whereto(settings: Settings) -> None:
    with mail_server() as server:
        settings.EMAIL_PORT = server.port
        assert faults(check_mail()) == []
        assert server.mails == []
        assert faults(check_mail("ops@example.com")) == []
        (mail,) = server.mails
        assert "To: ops@example.com" in mail
        settings.EMAIL_USE_TLS = True
        level, says = only_fault(check_mail())
        assert (level, "STARTTLS" in says) == ("fail", True)
    settings.EMAIL_PORT = port = free_port()
    assert only_fault(check_mail()) == (
        "fail",
        f"127.0.0.1, port {port}, cannot be used: Connection refused.",
    )
    # Sending none on purpose is no fault.
    settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
    (found,) = check_mail()
    assert (found.level, found.says.startswith("No mails are sent")) == ("ok", True)


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ({"AUTH": "535 no"}, "refuses the user or the password."),
        ({"greeting": "554 go away"}, "cannot be used: 554 go away."),
        ({"RCPT": "550 nobody here"}, "does not take mails to ops@example.com: 550 nobody here."),
    ],
)
def test_what_the_server_refuses_is_a_fault(settings: Settings, answers: dict[str, str], says: str) -> None:
    with mail_server(**answers) as server:
        settings.EMAIL_PORT = server.port
        level, said = only_fault(check_mail("ops@example.com"))
    assert level == "fail"
    assert said.endswith(says)
