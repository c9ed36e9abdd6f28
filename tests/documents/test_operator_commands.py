"""Each command that an operator reads is run by a test, or said to be one that cannot run in a test."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, get_commands, load_command_class

from .commands import PAGES, ROOT, commands, parts

COPYING, PACKAGES = "tests/nightly/operations", "tests/nightly/packages/test_newcomer.py"
INSTALLER = "tests/programs/packages.py"
UNITS, IMAGE = "tests/nightly/deploy/check_units.py", "tests/nightly/deploy/check_image.py"
# Commands of our own, and others in full. What runs them is a test, or a check before a release.
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
    "tickwire-server collectstatic": "tests/nightly/deploy/installation.py",
    "tickwire-server migrate": "tests/nightly/packages/test_production.py",
    "tickwire-server fold-archive": "tests/archive/test_operating.py",
    "tickwire-server serve": PACKAGES,
    "tickwire-server engine": "tests/config/test_command_line.py",
    "tickwire-server check": "tests/config/test_unsafe_start.py",
    "tickwire-server help": "tests/config/test_command_line.py",
    "tickwire-server --version": "tests/config/test_command_line.py",
    "tickwire-server poll-news": "tests/news/ingest/test_poll_news.py",
    "tickwire-server settings-table": "tests/config/test_settings_table.py",
    "tickwire-server issue-ingest-key": "tests/admin/test_ingest_keys.py",
    "tickwire-server issue-key": UNITS,
    "tickwire-server import-ticks": "tests/market/importing/test_real_processes.py",
    "uv pip install --python tickwire/bin/python --require-hashes -r requirements-archive.lock": INSTALLER,
    "uv pip install --python tickwire/bin/python --no-deps tickwire_server-*.whl": INSTALLER,
    "uv venv tickwire": INSTALLER,
    "uv build": "tests/nightly/packages/conftest.py",
    "make run": "tests/nightly/newcomer/test_first_minute.py",
    "docker build -f deploy/Dockerfile -t tickwire:local .": IMAGE,
    "nginx -t": "tests/nightly/deploy/proxies.py",
    "haproxy -c -f /etc/haproxy/haproxy.cfg": "tests/nightly/deploy/proxies.py",
    "pg_ctl promote": "tests/reliability/services/postgres_pair.py",
}
NO_DOCKER = "needs Docker; tests/nightly/deploy/test_compose.py reads the same file"
NO_INDEX = "asks a package index for a release, or installs into the account of whoever runs it"
# Programs of which no command can run here, and why.
NO_PROGRAM = {
    "uvx": NO_INDEX,
    "uv tool": NO_INDEX,
    "pipx": NO_INDEX,
    "docker compose": NO_DOCKER,
    "docker run": NO_DOCKER,
}
ITS_UNIT = "the unit of a distribution; tests/nightly/deploy/proxies.py starts the program with the same file"
AN_OPERATORS = "asks the journal of the operator's machine, and no test has a journal"
A_PROBE = "HOST stands for a machine; tests ask the same path by a client of their own"
SIGNALS = "PID stands for a process; tests/reliability/upgrade and restarts send the same signals"
OF_PYTHON = "is Python alone; tests/config/test_checks.py holds what such secrets are worth"
BY_HAND = "is itself a run of tests or of measurements"
# Other whole commands that no test runs, and why.
NOT_HERE = {
    "tickwire-server NAME": "stands for any of them",
    "systemctl reload nginx": ITS_UNIT,
    "systemctl reload haproxy": ITS_UNIT,
    "systemctl edit caddy": "opens an editor",
    "systemctl restart caddy": ITS_UNIT,
    "systemctl status tickwire-backup": "shows what happened to whoever looks",
    "systemctl status tickwire-backup tickwire-backup.timer": "shows what happened to whoever looks",
    "journalctl -k": AN_OPERATORS,
    "journalctl -u 'tickwire-web@*' -o cat": AN_OPERATORS,
    "journalctl -u 'tickwire-web@*' -o cat --since -1h": AN_OPERATORS,
    "curl -s HOST:9100/readyz": A_PROBE,
    "curl -s http://HOST:9100/livez": A_PROBE,
    "curl -s http://HOST:9100/readyz": A_PROBE,
    "curl -s http://HOST:9101/readyz": A_PROBE,
    "curl -s http://127.0.0.1:18001/metrics": "units-check asks this address by a client of its own",
    "kill -9": SIGNALS,
    "kill -TERM PID": SIGNALS,
    "kill -HUP PID": SIGNALS,
    "python3 -c 'import secrets; print(secrets.token_urlsafe(48))'": OF_PYTHON,
    "make units-check": BY_HAND,
    "make image-check": BY_HAND,
    "make drill": BY_HAND,
    "make test-services": BY_HAND,
    "make bench-units": BY_HAND,
    "make lint": BY_HAND,
    "make upgrade-check": BY_HAND,
}


def typed_by_units_check() -> Iterator[str]:
    """Blocks of the pages as they stand, and the words that it hands to its machine."""
    pages = {page.stem: page.read_text() for page in PAGES}
    section = pages["install"].partition("## With systemd")[2].partition("## A proxy in front")[0]
    for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL):
        # It asks for a name and a password, so it is left out there.
        yield block.replace("tickwire-admin createsuperuser\n", "")
    yield from re.findall(r"```sh\n(systemctl stop .*?)```", pages["backup"], re.DOTALL)
    yield from re.findall(r"^(?:redis-cli|runuser) .*$", pages["runbook"], re.MULTILINE)
    for node in ast.walk(ast.parse((ROOT / UNITS).read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "run":
            words = [each.value for each in node.args if isinstance(each, ast.Constant)]
            yield " ".join(map(str, words)).replace(".service", "")


TYPED = {
    " ".join(part.split())
    for block in typed_by_units_check()
    for line in block.replace("\\\n", " ").splitlines()
    for part in parts(line)
}


def own_words(command: str) -> list[str]:
    """What stands behind the name of our own program, the sub-command as the pages write it."""
    program, *words = command.removeprefix("do ").split()
    if program.rpartition("/")[2] not in ("tickwire-server", "tickwire-admin", "manage.py") or not words:
        return []
    return [words[0].replace("_", "-"), *words[1:]]


def entry_of(command: str) -> str | None:
    """What runs it or says why nothing does: by the whole command, and of our own by its sub-command."""
    if command in RUN or command in NOT_HERE:
        return command
    if words := own_words(command):
        own = f"tickwire-server {words[0]}"
        return UNITS if command in TYPED else own if own in {**RUN, **NOT_HERE} else None
    if command.removeprefix("do ") in TYPED:
        return UNITS
    return next((begin for begin in NO_PROGRAM if f"{command} ".startswith(f"{begin} ")), None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_command_is_run_by_a_test_or_named_as_one_that_cannot_be(page: Path) -> None:
    unknown = [command for command in commands(page) if entry_of(command) is None]
    assert unknown == [], "run them in a test and name it in RUN, or say in NOT_HERE why that cannot be"


def test_no_entry_is_stale() -> None:
    used = {entry_of(command) for page in PAGES for command in commands(page)}
    assert {*RUN, *NOT_HERE, *NO_PROGRAM} - used == set()


@pytest.mark.parametrize(
    "wrong",
    [
        "systemctl frobnicate nginx",
        "systemctl teleport caddy",
        "pg_ctl promote --no-such-option",
        "make all",
        "curl x",
    ],
)
def test_unknown_command_of_a_known_program_is_seen(wrong: str) -> None:
    assert entry_of(wrong) is None


@pytest.mark.parametrize(("begin", "path"), RUN.items())
def test_what_is_named_runs_the_command(begin: str, path: str) -> None:
    words, text = begin.split(), (ROOT / path).read_text()
    word = words[1] if words[0] not in ("haproxy", "nginx") else words[0]
    assert word in text or word.replace("-", "_") in text


def test_each_option_of_our_own_is_used_by_some_test() -> None:
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__))
    named = {
        word for page in PAGES for each in commands(page) for word in own_words(each)[1:] if word[:2] == "--"
    }
    unused = {
        option
        for option in named
        if f'"{option}"' not in tests and f"{option[2:].replace('-', '_')}=True" not in tests
    }
    assert unused == set()


def test_arguments_and_targets_that_are_named_are_taken() -> None:
    named = [command for page in PAGES for command in commands(page)]
    assert [fault for command in named if (fault := fault_of(command))] == []


@pytest.mark.parametrize(
    "wrong",
    [
        "tickwire-server serve --wrokers 4",
        "tickwire-server serv",
        "make no-such-target",
        "tickwire-server restore",
        "tickwire-server move sqlite:////srv/tickwire/tickwire.sqlite3",
        "tickwire-admin restore --replace",
    ],
)
def test_wrong_arguments_are_seen(wrong: str) -> None:
    assert fault_of(wrong)


def fault_of(command: str) -> str:
    program, *rest = command.split()
    if program == "make" and not re.search(rf"^{rest[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE):
        return f"no target: {command}"
    words = own_words(command)
    # Names by themselves: the text says what follows, or any command is meant.
    if not words or words[0] in ("help", "NAME", "--version") or words == ["import-ticks"]:
        return ""
    name = {"engine": "run_engine"}.get(words[0], words[0].replace("-", "_"))
    if name not in get_commands():
        return f"no command: {command}"
    parser = load_command_class(get_commands()[name], name).create_parser("tickwire-server", name)
    try:
        parser.parse_args(words[1:])
    except CommandError as fault:
        return f"{command}: {fault}"
    return ""
