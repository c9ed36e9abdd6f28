"""Each command that an operator reads is run by a test, or said to be one that cannot run in a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from .commands import PAGES, ROOT, commands

COPYING, PACKAGES = "tests/operations/copying", "tests/packages/test_newcomer.py"
UNITS, IMAGE = "tests/deploy/check_units.py", "tests/deploy/check_image.py"
INSTALL = (ROOT / "docs/operate/install.md").read_text()
# What a command begins with, and what runs it: a test, or one of the checks before a release.
RUN = {
    "tickwire-server backup": f"{COPYING}/test_backup.py",
    "tickwire-server restore": f"{COPYING}/test_backup.py",
    "tickwire-server move": f"{COPYING}/test_move.py",
    "tickwire-server export-account": "tests/accounts/ending/test_account_page.py",
    "tickwire-server delete-account": "tests/accounts/ending/test_deletion.py",
    "tickwire-server doctor": PACKAGES,
    "tickwire-server createsuperuser": "tests/accounts/login/test_superusers.py",
    "tickwire-server verify-ledger": "tests/reliability/database/test_backup.py",
    "tickwire-server rotate-secrets": "tests/reliability/access/test_rotated_secrets.py",
    "tickwire-server collectstatic": "tests/deploy/installation.py",
    "tickwire-server migrate": "tests/packages/test_production.py",
    "tickwire-server serve": PACKAGES,
    "tickwire-server engine": "tests/config/test_command_line.py",
    "tickwire-server check": "tests/config/test_unsafe_start.py",
    "tickwire-server help": "tests/config/test_command_line.py",
    "tickwire-server --version": "tests/config/test_command_line.py",
    "tickwire-server poll-news": "tests/news/ingest/test_poll_news.py",
    "tickwire-server settings-table": "tests/house/settings/test_table.py",
    "uv pip install": PACKAGES,
    "uv venv": "tests/programs/packages.py",
    "uv build": "tests/packages/conftest.py",
    "make run": "tests/newcomer/test_first_minute.py",
    "systemctl": UNITS,
    "tickwire-admin": UNITS,
    "install": UNITS,
    "apt-get": UNITS,
    "python3 -m venv": UNITS,
    "/opt/tickwire-$VERSION/bin/pip": UNITS,
    "runuser": UNITS,
    "systemd-sysusers": UNITS,
    "tickwire-server issue-ingest-key": "tests/admin/test_ingest_keys.py",
    "tickwire-server issue-key": UNITS,
    "tickwire-server import-ticks": "tests/market/importing/test_real_processes.py",
    "docker build": IMAGE,
    "nginx -t": "tests/deploy/proxies.py",
    "haproxy -c": "tests/deploy/proxies.py",
    "pg_ctl promote": "tests/reliability/services/postgres_pair.py",
}
A_PROGRAM = "a look that the program itself offers"
NO_DOCKER = "needs Docker; tests/deploy/test_compose.py reads the same file"
# What a command begins with, and why no test runs it.
NOT_HERE = {
    "uvx": "asks a package index for a release",
    "uv tool": "asks a package index for a release",
    "pipx": "asks a package index for a release",
    "docker compose": NO_DOCKER,
    "docker run": NO_DOCKER,
    "redis-cli": A_PROGRAM,
    "journalctl": A_PROGRAM,
    "curl": A_PROGRAM,
    "tickwire-server NAME": "stands for any of them",
    "kill": "part of the shell; tests/reliability/upgrade and restarts send the same signals",
    "python3 -c": "Python itself; tests/config/test_checks.py holds what such secrets are worth",
    "make": "a target of the Makefile, run by whoever develops",
}


def entry_of(command: str) -> str | None:
    """The longest that fits, so that a sub-command may be told from its program."""
    words = (
        command.removeprefix("do ")
        .removeprefix("NEW/bin/")
        .replace("manage.py ", "tickwire-server ")
        .split(" ")
    )
    within = " ".join([words[0], *(word.replace("_", "-") for word in words[1:2]), *words[2:]])
    fitting = [begin for begin in (*RUN, *NOT_HERE) if f"{within} ".startswith(f"{begin} ")]
    return max(fitting, key=len, default=None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_command_is_run_by_a_test_or_named_as_one_that_cannot_be(page: Path) -> None:
    unknown = [command for command in commands(page) if entry_of(command) is None]
    assert unknown == [], "run them in a test and name it in RUN, or say in NOT_HERE why that cannot be"


def test_no_entry_is_stale() -> None:
    used = {entry_of(command) for page in PAGES for command in commands(page)}
    assert {*RUN, *NOT_HERE} - used == set()


@pytest.mark.parametrize(("begin", "path"), RUN.items())
def test_what_is_named_runs_the_command(begin: str, path: str) -> None:
    word, text = begin.split()[-1], (ROOT / path).read_text()
    # It runs the block of the page as it stands.
    is_whole = path == UNITS and begin in INSTALL
    assert is_whole or word in text or word.replace("-", "_") in text


def test_options_and_targets_that_are_named_exist() -> None:
    named = [command for page in PAGES for command in commands(page)]
    assert [fault for command in named if (fault := fault_of(command))] == []
    for wrong in ("tickwire-server serve --wrokers 4", "tickwire-server serv", "make no-such-target"):
        assert fault_of(wrong)


def fault_of(command: str) -> str:
    program, *words = command.split()
    if program == "make" and not re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE):
        return f"no target: {command}"
    if program.rpartition("/")[2] not in ("tickwire-server", "manage.py") or words[0] in ("help", "NAME"):
        return ""
    if words == ["--version"]:
        return ""
    name = {"engine": "run_engine"}.get(words[0], words[0].replace("-", "_"))
    if name not in get_commands():
        return f"no command: {command}"
    parser = load_command_class(get_commands()[name], name).create_parser("tickwire-server", name)
    known = re.findall(r"-[\w-]+", parser.format_help())
    return "".join(
        f"no option {word}: {command}" for word in words[1:] if word[0] == "-" and word not in known
    )
