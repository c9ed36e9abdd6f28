"""`make units-check`: what docs/operate/install.md says of systemd, on a Debian booted by systemd-nspawn.

The machine within shares the network of this one, so the ports of the units, of PostgreSQL and of Redis must
be free. It takes some five minutes, downloads a Debian and all packages, and needs root."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.patience import PATIENCE_S, START_PATIENCE_S, wait_until
from tests.programs.debian import require_debian
from tests.reliability.services.processes import ROOT, logged

INSIDE = "ca-certificates,systemd,systemd-sysv,dbus,util-linux"
PORTS = (8001, 8002)
PROCESSES = ("web@8001", "web@8002", "engine@1", "engine@2")
PAGE = (ROOT / "docs/operate/install.md").read_text()
SECTION = PAGE[PAGE.index("## With systemd") : PAGE.index("## A proxy in front")]
INSTALL, UPGRADE = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)
RUNBOOK = (ROOT / "docs/operate/runbook.md").read_text()
BACKUP = (ROOT / "docs/operate/backup.md").read_text()
(RESTORE,) = re.findall(r"```sh\n(systemctl stop .*?)```", BACKUP, re.DOTALL)
# It asks for a name and a password.
ASKS = "tickwire-admin createsuperuser\n"
assert ASKS in INSTALL
# A password as a mail server gives it: the doctor warns of one as short as that of the page.
UNASKED = INSTALL.replace(ASKS, "").replace("user:password@", "user:a-longer-password@")
CHECKOUT, CERTIFICATES = "/opt/checkout", "/opt/certificates.crt"
# What root has there, and whose certificates count on this machine.
ENVIRONMENT = ("-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", f"PIP_CERT={CERTIFICATES}")


class Machine:
    """A booted Debian."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process, self._log = process, log

    def run(self, *words: str, within_s: float = PATIENCE_S) -> str:
        ran = self.try_(*words, within_s=within_s)
        assert ran.returncode == 0, f"{words}: {ran.stdout}{ran.stderr}"
        return ran.stdout.strip()

    def has_begun(self) -> bool:
        assert self._process.poll() is None, self._log.read_text(errors="replace")[-3000:]
        return bool(self._first()) and self.try_("systemctl", "is-active", "basic.target").returncode == 0

    def is_active(self, unit: str) -> bool:
        return self.try_("systemctl", "is-active", unit).returncode == 0

    def of_unit(self, unit: str, name: str) -> str:
        return self.run("systemctl", "show", "--value", "--property", name, f"tickwire-{unit}")

    def _first(self) -> str:
        """Its process 1, as this machine numbers it."""
        path = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        return path.read_text().strip() if path.exists() else ""

    def try_(self, *words: str, within_s: float = PATIENCE_S) -> subprocess.CompletedProcess[str]:
        command = ["nsenter", "-t", self._first(), "-m", "-u", "-i", "-p", "-C", "env", *ENVIRONMENT, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=within_s)


def nspawn(tree: Path) -> list[str]:
    """Without the systemd of this machine, which may have none."""
    program = require_debian("systemd-nspawn", "systemd-container")
    return [program, "--quiet", "--register=no", "--keep-unit", "-D", str(tree)]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("machine")
    found = folder / "tree"
    bootstrap = [require_debian("debootstrap"), "--variant=minbase", f"--include={INSIDE}"]
    subprocess.run(
        [*bootstrap, "bookworm", found, "http://deb.debian.org/debian"], check=True, capture_output=True
    )
    place = found / CHECKOUT.removeprefix("/")
    place.mkdir()
    pack = 'git ls-files -z --cached | tar --null --files-from=- --create | tar --extract --directory="$0"'
    subprocess.run(["sh", "-c", pack, place], cwd=ROOT, check=True)
    # As the page asks for; a sender at example.com would be warned of.
    settings = place / "deploy/systemd/tickwire.env"
    settings.write_text(settings.read_text().replace("no-reply@example.com", "no-reply@tickwire.example"))
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", found / CERTIFICATES.removeprefix("/"))
    yield found
    subprocess.run(["rm", "-r", "--one-file-system", folder], check=True)


@pytest.fixture(scope="module")
def machine(tree: Path) -> Iterator[Machine]:
    log = tree.parent / "boot.log"
    # The names that this machine knows, and its clock, which nobody there may set.
    command = [
        *nspawn(tree),
        "--resolv-conf=copy-host",
        "--system-call-filter=adjtimex clock_adjtime",
        "--boot",
    ]
    with logged(command, log) as process:
        booted = Machine(process, log)
        wait_until(booted.has_begun)
        booted.run("sh", "-c", f"cd {CHECKOUT}\n{UNASKED}", within_s=START_PATIENCE_S)
        wait_until(lambda: booted.is_active("tickwire.target"))
        yield booted


def test_all_processes_are_ready_when_the_target_is_and_figures_where_the_readme_says(
    machine: Machine, tree: Path
) -> None:
    assert all(machine.is_active(f"tickwire-{each}") for each in PROCESSES)
    for name in ("secrets", "tickwire.env"):
        assert (tree / "etc/tickwire" / name).stat().st_mode & 0o077 == 0
    assert {httpx.get(f"http://127.0.0.1:{port}/readyz").status_code for port in PORTS} == {200}
    for port in (18001, 18002, 9101, 9102):
        assert "tickwire_" in httpx.get(f"http://127.0.0.1:{port}/metrics").text


@pytest.mark.parametrize("name", PROCESSES)
def test_process_is_locked_in_and_no_secret_is_in_its_environment(
    machine: Machine, name: str, tree: Path
) -> None:
    status = machine.run("cat", f"/proc/{machine.of_unit(name, 'MainPID')}/status")
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert (facts["NoNewPrivs"], facts["Seccomp"], int(facts["CapEff"], 16)) == ("1", "2", 0)
    assert int(facts["Uid"].split()[0]) > 0
    environment = machine.run("cat", f"/proc/{machine.of_unit(name, 'MainPID')}/environ")
    for path in (tree / "etc/tickwire/secrets").iterdir():
        if secret := path.read_text().strip():
            assert secret not in environment


def test_admin_command_issues_a_key_that_the_service_takes(machine: Machine) -> None:
    key = machine.run("tickwire-admin", "issue-key", "alice")
    headers = {"X-API-Key": key, "Host": "api.example.com"}
    wait_until(lambda: httpx.get("http://127.0.0.1:8001/api/symbols", headers=headers).status_code == 200)


def test_doctor_sees_what_the_units_see(machine: Machine) -> None:
    # No proxy is in front, so it ends with a fault.
    told = json.loads(machine.run("sh", "-c", "tickwire-admin doctor --json || true"))
    levels = {each["about"]: each["level"] for each in reversed(told["findings"])}

    assert {levels[about] for about in ("data", "settings", "database", "redis")} == {"ok"}, told
    assert "does not say" not in str(told)


def test_restart_returns_when_the_process_serves_again(machine: Machine) -> None:
    before, began_s = machine.of_unit("web@8001", "MainPID"), time.monotonic()
    machine.run("systemctl", "restart", "tickwire-web@8001")

    assert httpx.get("http://127.0.0.1:8001/readyz").status_code == 200
    assert machine.of_unit("web@8001", "MainPID") != before
    # DRAIN_S: the proxy had time to notice.
    assert time.monotonic() - began_s > 5


def test_block_of_an_upgrade_leaves_each_process_new_and_ready(machine: Machine) -> None:
    before = {each: machine.of_unit(each, "MainPID") for each in PROCESSES}
    machine.run("sh", "-c", f"cd {CHECKOUT}\n{UPGRADE}", within_s=START_PATIENCE_S)

    assert all(machine.is_active(f"tickwire-{each}") for each in PROCESSES)
    assert all(machine.of_unit(each, "MainPID") != before[each] for each in PROCESSES)


def test_block_of_an_installation_ends_at_what_fails(machine: Machine) -> None:
    """Nothing is to be installed in this folder. What comes after that would work."""
    ran = machine.try_("sh", "-c", f"cd /\n{UNASKED}", within_s=START_PATIENCE_S)

    assert ran.returncode != 0
    assert "requirements-archive.lock" in ran.stderr


def test_block_of_an_installation_goes_on_with_what_is_there(machine: Machine, tree: Path) -> None:
    def kept() -> dict[str, str]:
        files = [*(tree / "etc/tickwire").rglob("*"), *(tree / "etc/redis").glob("*.conf")]
        return {str(path): path.read_text() for path in files if path.is_file()}

    before = kept()
    settings = tree / "etc/tickwire/tickwire.env"
    settings.write_text(settings.read_text() + "# Edited.\n")
    machine.run("sh", "-c", f"cd {CHECKOUT}\n{UNASKED}", within_s=START_PATIENCE_S)

    assert kept() == before | {str(settings): settings.read_text()}
    assert settings.read_text().endswith("# Edited.\n")
    wait_until(lambda: httpx.get("http://127.0.0.1:8001/readyz").json()["checks"]["redis"] == "ok")


@pytest.mark.parametrize(("program", "answer"), [("redis-cli", "PONG"), ("runuser", "(1 row)")])
def test_command_of_the_runbook_is_answered(machine: Machine, program: str, answer: str) -> None:
    (command,) = re.findall(rf"^{program} .*$", RUNBOOK, re.MULTILINE)
    assert answer in machine.run("sh", "-c", command)


def test_nightly_backup_is_whole_and_takes_the_place_of_old_ones(machine: Machine, tree: Path) -> None:
    folder = tree / "var/lib/tickwire/backups"
    machine.run("systemctl", "start", "tickwire-backup.service")
    (first,) = folder.iterdir()
    old, kept, foreign = (folder / name for name in ("tickwire-old.zip", "tickwire-kept.zip", "notes.txt"))
    for path, days in ((old, 8), (kept, 6), (foreign, 100)):
        path.touch()
        os.utime(path, (time.time() - days * 86_400,) * 2)
    # Names have seconds in them.
    first.rename(folder / "tickwire-first.zip")
    machine.run("systemctl", "start", "tickwire-backup.service")
    (second,) = set(folder.iterdir()) - {kept, foreign, folder / "tickwire-first.zip"}

    machine.run("tickwire-admin", "backup", "--verify", f"/{second.relative_to(tree)}")
    assert second.stat().st_mode & 0o077 == 0
    assert machine.is_active("tickwire-backup.timer")


def test_block_of_a_restore_puts_back_the_secrets_too(machine: Machine, tree: Path) -> None:
    key, secrets = machine.run("tickwire-admin", "issue-key", "restored"), tree / "etc/tickwire/secrets"
    before = {name: (secrets / name).read_text() for name in ("secret_key", "key_pepper", "database_url")}
    machine.run("tickwire-admin", "backup", "/var/lib/tickwire/tickwire.zip", "--with-secrets")
    machine.run("sh", "-c", "mkdir /srv/backups && mv /var/lib/tickwire/tickwire.zip* /srv/backups")
    # As if the machine were new.
    for name in ("secret_key", "key_pepper"):
        (secrets / name).unlink()
    machine.run(f"{CHECKOUT}/deploy/make-secrets", "/etc/tickwire/secrets")
    assert (secrets / "key_pepper").read_text() != before["key_pepper"]
    machine.run("sh", "-c", f"cd {CHECKOUT}\n{RESTORE}", within_s=START_PATIENCE_S)

    assert {name: (secrets / name).read_text() for name in before} == before
    headers = {"X-API-Key": key, "Host": "api.example.com"}
    wait_until(lambda: httpx.get("http://127.0.0.1:8001/readyz").status_code == 200)
    assert httpx.get("http://127.0.0.1:8001/api/symbols", headers=headers).status_code == 200


@pytest.mark.parametrize("signal", ["KILL", "STOP"])
def test_killed_or_frozen_process_is_started_again(machine: Machine, signal: str) -> None:
    before = machine.of_unit("web@8002", "MainPID")
    machine.run("systemctl", "kill", "--signal", signal, "tickwire-web@8002")

    wait_until(lambda: machine.of_unit("web@8002", "MainPID") not in (before, "0"))
    wait_until(lambda: machine.is_active("tickwire-web@8002"))
    assert httpx.get("http://127.0.0.1:8002/readyz").status_code == 200


def test_all_of_it_stops_in_good_order(machine: Machine) -> None:
    machine.run("systemctl", "stop", "tickwire.target")

    wait_until(lambda: not any(machine.is_active(f"tickwire-{each}") for each in PROCESSES))
    assert {machine.of_unit(each, "Result") for each in PROCESSES} == {"success"}
