"""Every test runs against real things: a database file or server, and a server process' own socket."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Before anything reads the settings: an installation of its own for this run (and each xdist worker).
worker = os.environ.get("PYTEST_XDIST_WORKER", "")
_var = tempfile.TemporaryDirectory(prefix="tickwire-test-")
os.environ |= {"VAR_DIR": _var.name, "DEMO": "0", "ACCESS_LOG": "0", "LOG_LEVEL": "WARNING"}
os.environ["METRICS_TOKEN"] = "only-for-tests"
# Tests move the clock of this process; servers that they start have the one of everybody.
os.environ["STEADY_CLOCK"] = "0"
if os.environ.get("REDIS_URL"):
    database = int(worker.removeprefix("gw") or 0)
    os.environ["REDIS_URL"] = f"{os.environ['REDIS_URL'].rsplit('/', 1)[0]}/{database}"
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from .programs.patient import sitecustomize as patient  # noqa: E402

_folders = str(Path(patient.__file__).parent), os.environ.get("PYTHONPATH", "")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, _folders))

import django  # noqa: E402

from config.installation import prepare  # noqa: E402

prepare()
django.setup()
# A worker that inherits it would read the settings before this file gives it places of its own.
del os.environ["DJANGO_SETTINGS_MODULE"]
del os.environ["STEADY_CLOCK"]

from core.version import known_rules  # noqa: E402

# Rules 2 begin where a test says so: then nothing is filled unless ticks come.
asked_by_the_service, known_rules.asked = known_rules.asked, []

import hypothesis  # noqa: E402
import pytest  # noqa: E402
from django.conf import settings  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import TransactionTestCase  # noqa: E402
from httpx._config import DEFAULT_TIMEOUT_CONFIG  # noqa: E402
from hypothesis import HealthCheck  # noqa: E402
from redis import Redis  # noqa: E402
from xdist.remote import Producer  # noqa: E402
from xdist.scheduler import LoadScopeScheduling  # noqa: E402

from accounts.login import sessions  # noqa: E402
from archive.folding.fold import nightly  # noqa: E402
from core.fault_log import LastingFault, RepeatedWarning, unavailable, unexpected  # noqa: E402
from core.logs import SAMPLED  # noqa: E402
from core.process import freeze_startup_objects  # noqa: E402
from pages import strangers  # noqa: E402
from pages.strangers import kept_pages  # noqa: E402
from pages.terminal import kept_watchlist  # noqa: E402
from signals_feed.publishers.standings import kept_standings  # noqa: E402
from status.views import summary_cache  # noqa: E402
from tests.accounts.back_office.office import Office  # noqa: E402
from tests.databases.emptying import empty_database  # noqa: E402
from tests.factories import make_user  # noqa: E402
from transparency.remembered import FILE, remembered  # noqa: E402

from .client import Api, Server  # noqa: E402
from .databases import prepared  # noqa: E402
from .made_once import make_once  # noqa: E402
from .patience import PATIENCE_S  # noqa: E402
from .programs import services  # noqa: E402

# How long an example takes is the machine's affair; what its fixtures make is the same for all examples.
# And the gate draws the same each time: what a new one finds refuses no change that did not cause it.
hypothesis.settings.register_profile(
    "gate",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
gate = hypothesis.settings.get_profile("gate")
hypothesis.settings.register_profile("night", gate, derandomize=False, print_blob=True)
hypothesis.settings.load_profile("gate")

# What tests ask for without saying how long they wait.
for each in ("connect", "read", "write", "pool"):
    setattr(DEFAULT_TIMEOUT_CONFIG, each, PATIENCE_S)


# A crowd of threads on a machine busy with other things has its connections in the end.
if pool := settings.DATABASES["default"].get("OPTIONS", {}).get("pool"):
    pool["timeout"] = PATIENCE_S


_kept_logs: list[LastingFault | RepeatedWarning] = []
make_once()
TransactionTestCase._fixture_teardown = empty_database  # type: ignore[attr-defined]


ONE_DEMO = ("tests/nightly/demo/test_first_run.py", "tests/nightly/demo/test_next_runs.py")
ONE_BUILD = tuple(f"tests/clients/test_{name}.py" for name in ("returning", "typescript"))


class Together(LoadScopeScheduling):  # type: ignore[misc]
    """A file's tests run in one worker, because they share what is slow to start; so do those of one demo or
    one build."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(ONE_BUILD):
            return "build"
        return "demo" if nodeid.startswith(ONE_DEMO) else nodeid.partition("::")[0]


def pytest_configure() -> None:
    # Before there are workers, so that it is one for all.
    prepared.directory()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Together:
    return Together(config, log)


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """The one that `django_db_modify_db_settings` puts there."""
    return True


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """A copy instead of the migrations, which would take each process as long as hundreds of tests."""
    name = connection.creation._get_test_db_name()  # type: ignore[attr-defined]
    if connection.vendor == "sqlite":
        prepared.copy_sqlite(Path(name))
    else:
        prepared.copy_database(os.environ["DATABASE_URL"], name)


@pytest.fixture(scope="session")
def var_dir() -> Path:
    return Path(_var.name)


@pytest.fixture(autouse=True)
def _fast_passwords(settings: object) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def _new_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    """All tests come from one address."""
    monkeypatch.setattr(sessions, "strangers", sessions.Strangers())
    monkeypatch.setattr(strangers, "WORK_S", 100 * strangers.WORK_S)
    monkeypatch.setattr(strangers, "REFUSED_AFTER_S", 0)
    strangers.strangers_work.clear()


@pytest.fixture
def all_processes_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which rules they know, as in a service."""
    monkeypatch.setattr(known_rules, "asked", asked_by_the_service)


@pytest.fixture(scope="session")
def own_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with services.redis(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def shared(own_redis: str, settings: Any) -> str:
    """A Redis that is there for all, and empty."""
    settings.REDIS_URL = own_redis
    with Redis.from_url(own_redis) as client:
        client.flushall()
    return own_redis


@pytest.fixture
def office(db: None) -> Office:
    return Office(make_user("boss", is_staff=True, is_superuser=True))


@pytest.fixture(autouse=True)
def _nothing_is_known_from_before() -> None:
    """What one test caused is new to the next one."""
    remembered.forget()
    kept_pages.clear()
    kept_standings.clear()
    kept_watchlist.clear()
    summary_cache.clear()
    nightly.done, nightly.fault = None, ""
    Path(_var.name, FILE).unlink(missing_ok=True)
    unexpected.forget()
    unavailable.kinds.clear()
    for log in (*SAMPLED, *_kept_logs):
        log.forget()


@pytest.fixture
def server(transactional_db: None) -> Iterator[Server]:
    """A real server on a real socket, with the empty market of a fresh installation."""
    if settings.REDIS_URL:
        import redis

        with redis.Redis.from_url(settings.REDIS_URL) as client:
            client.flushdb()
    with Server() as running:
        yield running


@pytest.fixture
def api(server: Server) -> Iterator[Api]:
    """A client with a valid key of a tier that no test uses up by accident."""
    from .factories import make_account, make_key, make_tier

    limits = {"requests_per_minute": 100_000, "ai_calls_per_day": 100_000}
    account = make_account(tier=make_tier("roomy", archive=True, **limits))
    with Api(server, make_key(account)) as client:
        yield client


def pytest_collection_finish() -> None:
    """What thousands of collected tests are made of stays, so the collector need not look at it again."""
    # What the start had frozen is not among the objects.
    gc.unfreeze()
    _kept_logs.extend(each for each in gc.get_objects() if type(each) in (LastingFault, RepeatedWarning))
    freeze_startup_objects()
