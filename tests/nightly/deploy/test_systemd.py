"""The units: as systemd reads them, and whether what they forbid is what our processes do without.

`make units-check` boots them. Here, under strace, the real processes show which calls they make."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from config.environment import FILE
from config.environment.variables import VARIABLES
from tests.patience import PATIENCE_S
from tests.programs import services
from tests.programs.debian import require_debian
from tests.programs.services import free_port
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import ROOT

from .installation import DRAIN_S, HOST, SECRETS, ProductionInstallation, check_variables

UNITS = ROOT / "deploy/systemd"
COMMON = "tickwire-.service.d/common.conf"
SERVICES = (
    "tickwire-web@.service",
    "tickwire-engine@.service",
    "tickwire-migrate.service",
    "tickwire-backup.service",
)
PROGRAM = "/opt/tickwire/bin/tickwire-server"
WORST_EXPOSURE = 1.5
"""Of 10. A service that is as open as it can be has 9.6."""
CALL = re.compile(r"^\d+ +(?:<\.\.\. )?(\w+)[( ]", re.M)
# Writable and executable at once, or made executable after it was written.
CODE_OF_DATA = re.compile(r"mmap\([^)]*PROT_WRITE\|PROT_EXEC|(?:pkey_)?mprotect\([^)]*PROT_EXEC")

each_service = pytest.mark.parametrize("name", SERVICES)


def values(name: str, key: str) -> list[str]:
    """Of the unit and of the drop-in that it shares with the others."""
    text = "".join((UNITS / each).read_text() for each in (COMMON, name))
    return re.findall(rf"^{key}=(.*)$", text, re.M)


def environment(name: str) -> dict[str, str]:
    return dict(each.split("=", 1) for line in values(name, "Environment") for each in line.split())


def analyze(*words: str) -> subprocess.CompletedProcess[str]:
    program = require_debian("systemd-analyze", "systemd")
    return subprocess.run([program, *words], capture_output=True, text=True, check=False)


def test_systemd_takes_them(tmp_path: Path) -> None:
    shutil.copytree(UNITS, tmp_path, dirs_exist_ok=True)
    for path in tmp_path.glob("*.service"):
        path.write_text(path.read_text().replace(PROGRAM, sys.executable))
    names = ["tickwire.target", "tickwire.slice", "tickwire-migrate.service", "tickwire-backup.timer"]
    names += ["tickwire-web@8001.service", "tickwire-engine@1.service"]
    checked = analyze("verify", "--man=no", *(str(tmp_path / name) for name in names))

    # What else it complains about are units of this machine.
    assert [line for line in checked.stderr.splitlines() if "tickwire" in line] == []
    assert checked.returncode == 0


@each_service
def test_it_is_hardly_exposed(name: str) -> None:
    checked = analyze("security", "--offline=yes", "--no-pager", str(UNITS / name))
    (exposure,) = re.findall(r"exposure level for \S+: ([\d.]+)", checked.stdout)
    assert float(exposure) <= WORST_EXPOSURE


@each_service
def test_its_variables_are_known_and_each_secret_is_handed_to_it(name: str) -> None:
    given = environment(name)
    check_variables(given, "%d")
    credentials = {each.partition(":")[0] for each in values(name, "LoadCredential")}
    assert credentials == {secret.lower() for secret in SECRETS}
    named = set(re.findall(r"^([A-Z_]+)=", (UNITS / "tickwire.env").read_text(), re.M))
    needed = {name for name, variable in VARIABLES.items() if variable.is_needed}
    assert named <= set(VARIABLES)
    assert needed <= named | {variable.removesuffix(FILE) for variable in given}
    if name in SERVICES[:2]:
        assert DRAIN_S + VARIABLES["STOP_WITHIN_S"].default < float(values(name, "TimeoutStopSec")[0])


def test_the_target_wants_the_ports_to_which_the_proxies_pass_on() -> None:
    wanted = set(re.findall(r"tickwire-web@(\d+)", (UNITS / "tickwire.target").read_text()))
    for path in ("nginx/tickwire.conf", "haproxy/haproxy.cfg", "caddy/Caddyfile"):
        assert set(re.findall(r"127\.0\.0\.1:(80\d\d)", (ROOT / "deploy" / path).read_text())) == wanted


def test_admin_command_is_a_unit_for_which_the_drop_in_holds() -> None:
    (name,) = re.findall(r'--unit="([^"]+)"', (UNITS / "tickwire-admin").read_text())
    assert name.startswith(COMMON.partition(".")[0])


def test_backup_makes_room_of_what_killed_runs_left_and_keeps_the_others_until_it_has_succeeded(
    tmp_path: Path,
) -> None:
    ages = {
        "tickwire-old.zip": 8,
        "tickwire-old.zip.secrets": 8,
        "tickwire-kept.zip": 6,
        "tickwire-killed.zip.part": 2,
        "tickwire-running.zip.part": 0,
        "notes.txt": 100,
    }
    for name, days in ages.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() - days * 86_400,) * 2)

    def left_after(key: str) -> set[str]:
        (line,) = values("tickwire-backup.service", key)
        words = line.removeprefix("-").replace("/var/lib/tickwire/backups", str(tmp_path))
        subprocess.run(shlex.split(words), check=True)
        return {path.name for path in tmp_path.iterdir()}

    assert left_after("ExecStartPre") == set(ages) - {"tickwire-killed.zip.part"}
    assert left_after("ExecStartPost") == set(ages) - {"tickwire-killed.zip.part", "tickwire-old.zip"}


class Traced(NamedTuple):
    calls: set[str]
    code_of_data: list[str]


def strace(log: Path, *words: str) -> list[str]:
    command = [require_debian("strace"), "-f", "-qq", "-e", "signal=none", "-o", str(log)]
    return [*command, sys.executable, "manage.py", *words]


@contextmanager
def traced(installation: ProductionInstallation, *words: str, **changes: str) -> Iterator[Path]:
    """From the moment in which it has told systemd that it is ready, and alive."""
    log = installation.directory / f"{words[0]}.strace"
    with ExitStack() as open_:
        systemd = open_.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        systemd.settimeout(PATIENCE_S)
        systemd.bind("")
        notify = f"@{systemd.getsockname()[1:].decode()}"
        process = subprocess.Popen(
            strace(log, *words),
            cwd=ROOT,
            env=installation.environment(NOTIFY_SOCKET=notify, DRAIN_S="0", **changes),
            stdout=subprocess.DEVNULL,
        )
        try:
            told = [systemd.recv(100).partition(b"=")[0] for _ in range(3)]
            assert told == [b"READY", b"WATCHDOG_USEC", b"WATCHDOG"]
            yield log
        finally:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            for child in children:
                os.kill(int(child), signal.SIGTERM)
            process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    """What an engine and a web process do from their start to their end."""
    directory, port = tmp_path_factory.mktemp("traced"), free_port()
    with ExitStack() as running:
        database = PrivatePostgres(directory)
        running.enter_context(database.running())
        redis = running.enter_context(services.redis(directory))
        installation = ProductionInstallation(directory, database.url, redis)
        logs = [
            running.enter_context(traced(installation, "run_engine")),
            running.enter_context(traced(installation, "serve", PORT=str(port), NEWS_POLLING="1")),
        ]
        headers = {"Host": HOST, "X-Forwarded-Proto": "https"}
        page = httpx.get(f"http://127.0.0.1:{port}/accounts/login/", headers=headers)
        assert page.status_code == 200
        # An engine runs it each night.
        logs.append(directory / "fold.strace")
        fold = strace(logs[-1], "fold_archive")
        subprocess.run(fold, cwd=ROOT, env=installation.environment(), check=True)
    text = "".join(log.read_text(errors="replace") for log in logs)
    return Traced(set(CALL.findall(text)), CODE_OF_DATA.findall(text))


def calls_of(group: str) -> set[str]:
    """Also of the groups within it."""
    lines = analyze("syscall-filter", "--no-pager", group).stdout.splitlines()[1:]
    found = {line.strip() for line in lines if not line.strip().startswith("#")} - {""}
    groups = {name for name in found if name.startswith("@")}
    return (found - groups).union(*(calls_of(name) for name in groups))


@each_service
def test_no_call_that_it_forbids_is_made(name: str, seen: Traced) -> None:
    left: set[str] = set()
    for line in values(name, "SystemCallFilter"):
        change = left.difference_update if line.startswith("~") else left.update
        for word in line.removeprefix("~").split():
            change(calls_of(word) if word.startswith("@") else {word})

    assert {"epoll_wait", "mmap", "connect", "setpriority"} <= seen.calls
    assert seen.calls - left == set()


def test_nothing_is_executed_that_was_written(seen: Traced) -> None:
    assert seen.code_of_data == []
