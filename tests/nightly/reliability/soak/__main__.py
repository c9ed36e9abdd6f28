"""`make soak HOURS=4`: the scaled service under mixed load, looked at each minute and drawn for the docs."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

_var = tempfile.TemporaryDirectory(prefix="tickwire-soak-")
os.environ |= {"VAR_DIR": _var.name, "DEMO": "0", "ACCESS_LOG": "0", "LOG_LEVEL": "WARNING"}
os.environ |= {"REDIS_URL": "", "DATABASE_URL": "", "SECRET_KEY": "soak", "KEY_PEPPER": "soak"}
# As it is shipped, and not as the gate runs it.
os.environ["DEADLINES_TIMES"] = "1"
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import tests.programs.patient.sitecustomize  # noqa: E402, F401 - as in the processes that it starts

import django  # noqa: E402 isort: skip

django.setup()
del os.environ["DJANGO_SETTINGS_MODULE"]

from django.contrib.auth.models import Permission  # noqa: E402

from market.push.keys import issue_ingest_key  # noqa: E402
from tests.factories import make_instrument, make_user  # noqa: E402
from tests.nightly.reliability.clients.meters import Meter, listening  # noqa: E402
from tests.programs import services  # noqa: E402
from tests.reliability.services.engine_processes import engines  # noqa: E402
from tests.reliability.services.processes import ROOT, Installation  # noqa: E402
from tests.reliability.services.stream_services import StreamService  # noqa: E402
from tests.staff import staff_client  # noqa: E402

from . import picture, report  # noqa: E402
from .loads import (  # noqa: E402
    BreakingSource,
    Churn,
    Load,
    Pages,
    Publishing,
    Rest,
    Ticks,
)
from .samples import Cores, Sample, figures_of, sizes  # noqa: E402

SYMBOLS = [f"SOAK{number}" for number in range(10)]
LISTENERS = 500
READY_WITHIN_S = 300
# One publisher stands for many.
MANY = "1000000"
PICTURE, DOCUMENT = ROOT / "docs/images/soak.svg", ROOT / "docs/reliability.md"


class Soak:
    def __init__(self, service: StreamService, pids: dict[str, int]) -> None:
        self._service, self._pids = service, pids
        self.samples: list[Sample] = []
        self.loads: list[Load] = []
        self._cores = Cores()

    def run(self, minutes: float, every_s: float, meters: dict[str, Meter]) -> None:
        began_at = time.monotonic()
        for load in self.loads:
            load.start()
        while (passed := time.monotonic() - began_at) < minutes * 60:
            time.sleep(min(every_s, minutes * 60 - passed) or every_s)
            self._look((time.monotonic() - began_at) / 60, meters)
        for load in self.loads:
            load.stop()

    def _look(self, minute: float, meters: dict[str, Meter]) -> None:
        figures: dict[str, float] = {}
        for name, pid in self._pids.items():
            figures |= figures_of(name, pid)
        for name, meter in meters.items():
            heard = meter.take()
            figures |= {f"p99 of streams, {name}": heard.p99_ms, f"heard: {name}": heard.frames}
            figures |= {f"lost: {name}": heard.missed, f"ended: {name}": heard.ended}
        for load in self.loads:
            figures |= load.take()
        installation = self._service.installation
        figures |= sizes(installation.database_url, installation.redis_url) | self._cores.take()
        self.samples.append(Sample(minute, figures))
        say({"minute": round(minute, 2)} | {name: round(value, 2) for name, value in figures.items()})


def say(figures: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()


@contextmanager
def scaled(directory: Path) -> Iterator[tuple[StreamService, dict[str, int]]]:
    with ExitStack() as stack:
        database = stack.enter_context(services.postgres(directory))
        redis = stack.enter_context(services.redis(directory))
        installation = Installation(directory, database, redis)
        done = installation.manage("migrate", "--verbosity", "0")
        assert done.returncode == 0, done.stderr
        service = StreamService(installation, SYMBOLS)
        (engine,) = stack.enter_context(engines(installation, 1))
        for _ in range(2):
            process = installation.web_process(
                PUBLICATIONS_PER_MINUTE=MANY, ACTIVE_SIGNALS_PER_PUBLISHER=MANY
            )
            service.servers.append(stack.enter_context(process))
        until = time.monotonic() + READY_WITHIN_S
        while not service.push(service.make_ticks(SYMBOLS)):
            assert time.monotonic() < until, "no tick was taken"
            time.sleep(0.2)
        pids = {f"web {number}": server.pid for number, server in enumerate(service.servers, 1)}
        yield service, pids | {"engine": engine.pid}


def make_loads(service: StreamService) -> list[Load]:
    first, second = service.servers
    with service.installation.orm():
        boss = make_user("boss", is_staff=True, is_superuser=True)
        publisher = make_user("publisher")
        publisher.user_permissions.add(Permission.objects.get(codename="publish_signal"))
        sessions = [str(staff_client(user).session.session_key) for user in (boss, publisher)]
        make_instrument("TORN", source="push")
        torn = issue_ingest_key("torn", "TORN", by="soak")[1]
    key = service.make_key(requests_per_minute=1_000_000)
    return [
        Ticks(service),
        Rest([first.url, second.url], key, SYMBOLS),
        Churn([first.port, second.port], key, SYMBOLS),
        Pages(first.url, sessions[0]),
        Publishing(second.url, sessions[1], service),
        BreakingSource(second.port, torn, "TORN"),
    ]


def main() -> int:
    minutes = 60 * float(os.environ.get("HOURS", "1"))
    every_s = float(os.environ.get("EVERY_S", "60"))
    with (
        tempfile.TemporaryDirectory(prefix="tickwire-soak-") as place,
        scaled(Path(place)) as (service, pids),
        ExitStack() as stack,
    ):
        soak = Soak(service, pids)
        soak.loads = make_loads(service)
        message = {"action": "subscribe", "symbols": SYMBOLS, "features": ["seq"]}
        message |= {"api_key": service.make_key()}
        meters = {
            f"web {number}": stack.enter_context(listening(server.port, "/ws/market", message, LISTENERS))
            for number, server in enumerate(service.servers, 1)
        }
        soak.run(minutes, every_s, meters)
        left = service.open_streams(service.make_key())
    PICTURE.write_text(picture.picture(soak.samples))
    report.write(DOCUMENT, soak.samples, soak.loads, left)
    faults = report.faults(soak.samples, soak.loads)
    sys.stdout.write("\n".join(faults or ["Nothing rises."]) + "\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
