"""An installation as operators run it: production, PostgreSQL, Redis, an engine, and two web processes."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from config.environment import FILE
from config.environment.variables import VARIABLES
from tests.patience import PATIENCE_S, wait_until
from tests.programs import services
from tests.programs.services import free_port
from tests.reliability.services.engine_processes import engines
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import ROOT, Installation, tied

# Instead of api.example.com: a name that this machine knows.
HOST = "localhost"
# The proxies', and those of clients who forge what a proxy says.
TRUSTED = "127.0.0.1,127.0.1.0/24"
DRAIN_S = 5.0
SYMBOL, QUIET = "BTCUSD", "ETHUSD"
PREPARE = """
from django.core.management import call_command
from accounts.models import Tier
call_command("load_instruments", verbosity=0)
call_command("collectstatic", clear=True, interactive=False, verbosity=0)
Tier.objects.filter(name="premium").update(requests_per_minute=1_000_000, streams=1_000)
call_command("issue_key", "alice", "--tier", "premium")
call_command("issue_ingest_key", "desk")
"""


SECRETS = {name for name, variable in VARIABLES.items() if variable.is_secret}


def check_variables(given: Mapping[str, str], folder: str) -> None:
    """All that are handed to a process are known, and it reads each secret from its file."""
    for variable in given:
        plain = variable.removesuffix(FILE)
        assert plain in VARIABLES
        assert variable == plain or VARIABLES[plain].is_secret
    read = {variable: value for variable, value in given.items() if variable.endswith(FILE)}
    assert read == {f"{secret}{FILE}": f"{folder}/{secret.lower()}" for secret in SECRETS}
    assert not {"DRAIN_S", "STOP_WITHIN_S"} & set(given)


class ProductionInstallation(Installation):
    def __init__(self, directory: Path, database_url: str, redis_url: str) -> None:
        super().__init__(directory, database_url, redis_url)
        self._secrets = {name: secrets.token_urlsafe(48) for name in ("SECRET_KEY", "KEY_PEPPER")}

    def environment(self, **changes: str) -> dict[str, str]:
        given = {
            **self._secrets,
            "PRODUCTION": "1",
            "ALLOWED_HOSTS": HOST,
            "EMAIL_URL": "dummymail://",
            "TRUSTED_PROXIES": TRUSTED,
            "NEWS_POLLING": "0",
        }
        return super().environment(**given | changes)


class WebProcess:
    """One of the two: it can be ended, and started again at its port."""

    def __init__(self, installation: ProductionInstallation, name: str) -> None:
        self.port = free_port()
        self.log = installation.directory / f"{name}.log"
        self._environment = installation.environment()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as out:
            command = tied("manage.py", "serve", "--port", str(self.port))
            self._process = subprocess.Popen(command, cwd=ROOT, env=self._environment, stdout=out, stderr=out)

    def wait_until_ready(self) -> None:
        wait_until(self._is_ready)

    def terminate(self) -> int:
        """Its exit code, once it is gone."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(PATIENCE_S)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log.read_text()[-2000:]
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/readyz").status_code == 200
        except httpx.TransportError:
            return False


class Pair:
    def __init__(self, first: WebProcess, second: WebProcess, key: str, ingest_key: str, secret: str) -> None:
        self.first, self.second = first, second
        self.key, self.ingest_key = key, ingest_key
        self.secret = secret
        """Of all its processes: SECRET_KEY."""

    @property
    def ports(self) -> tuple[int, int]:
        return self.first.port, self.second.port


@contextmanager
def pair(directory: Path) -> Iterator[Pair]:
    with ExitStack() as running:
        database = PrivatePostgres(directory)
        running.enter_context(database.running())
        redis = running.enter_context(services.redis(directory))
        installation = ProductionInstallation(directory, database.url, redis)
        done = installation.manage("shell", "-v", "0", "-c", PREPARE)
        assert done.returncode == 0, done.stderr
        both = [WebProcess(installation, name) for name in ("web-1", "web-2")]
        for each in both:
            running.callback(each.kill)
            each.start()
        running.enter_context(engines(installation, 1))
        for each in both:
            each.wait_until_ready()
        key, ingest_key = done.stdout.split()
        yield Pair(both[0], both[1], key, ingest_key, installation.environment()["SECRET_KEY"])
