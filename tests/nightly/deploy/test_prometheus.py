"""A real Prometheus scrapes a real service and a real engine: whatever rules and panels ask for is there."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.patience import PATIENCE_S, wait_until
from tests.programs.debian import require_debian
from tests.programs.services import free_port, redis
from tests.reliability.services.engine_processes import engine_process
from tests.reliability.services.processes import Installation, stop
from tests.reliability.services.supervised import supervised

from .test_observability import FILES, expressions, metrics_in

SUFFIXES = ("_bucket", "_count", "_sum")
OF_THE_SERVICE = {"TickwireServiceDown", "TickwireEngineNotHeard", "TickwireServerErrors", "TickwireDegraded"}


class Prometheus:
    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}"
        self._url = f"{self._base}/api/v1"

    def is_ready(self) -> bool:
        """Until then it answers 503, in plain text."""
        try:
            return httpx.get(f"{self._base}/-/ready", timeout=PATIENCE_S).status_code == 200
        except httpx.TransportError:
            return False

    def ask(self, path: str, **parameters: str) -> Any:
        answer = httpx.get(f"{self._url}/{path}", params=parameters, timeout=PATIENCE_S).json()
        assert answer["status"] == "success", answer
        return answer["data"]

    def is_up(self, job: str) -> bool:
        found = self.ask("query", query=f'up{{job="{job}"}}')["result"]
        return bool(found) and all(each["value"][1] == "1" for each in found)


@contextmanager
def running(directory: Path, targets: dict[str, int]) -> Iterator[Prometheus]:
    config = yaml.safe_load((FILES / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(FILES / "alerts.yml")]
    for job in config["scrape_configs"]:
        job["static_configs"] = [{"targets": [f"127.0.0.1:{targets[job['job_name']]}"]}]
    (directory / "prometheus.yml").write_text(yaml.safe_dump(config))
    port = free_port()
    command = [
        require_debian("prometheus"),
        f"--config.file={directory / 'prometheus.yml'}",
        f"--storage.tsdb.path={directory / 'prometheus'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (directory / "prometheus.log").open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        yield Prometheus(port)
    finally:
        stop(process)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    directory: Path = tmp_path_factory.mktemp("observed")
    web, engine = free_port(), free_port()
    with ExitStack() as stack:
        url = stack.enter_context(redis(directory))
        installation = Installation(directory, f"sqlite:///{directory / 'x.sqlite3'}", url)
        assert installation.manage("migrate", "--verbosity", "0").returncode == 0
        assert installation.manage("load_instruments").returncode == 0
        stack.enter_context(engine_process(installation, 1, {"ENGINE_PORT": str(engine)}))
        stack.enter_context(supervised(installation, METRICS_PORT=str(web)))
        found = stack.enter_context(running(directory, {"tickwire-web": web, "tickwire-engine": engine}))
        wait_until(found.is_ready)
        wait_until(lambda: found.is_up("tickwire-web") and found.is_up("tickwire-engine"))
        yield found


def test_every_metric_that_is_asked_for_is_exported(prometheus: Prometheus) -> None:
    exported = set(prometheus.ask("metadata")) | {"up"}
    families = {name.removesuffix(suffix) for name in exported for suffix in ("", *SUFFIXES)}
    asked = {name for expression in expressions() for name in metrics_in(expression)}
    assert len(asked) > 30
    unknown = {
        name
        for name in asked
        if name not in exported and not any(name.removesuffix(end) in families for end in SUFFIXES)
    }
    assert unknown == set()


@pytest.mark.parametrize("expression", expressions())
def test_every_expression_can_be_evaluated(prometheus: Prometheus, expression: str) -> None:
    assert prometheus.ask("query", query=expression)["resultType"] == "vector"


def test_control_an_unknown_metric_is_seen(prometheus: Prometheus) -> None:
    assert metrics_in('rate(tickwire_nothing_total{reason="x"}[5m])') == {"tickwire_nothing_total"}
    assert "tickwire_nothing_total" not in prometheus.ask("metadata")


def test_no_alert_about_the_service_itself_is_near_where_all_is_well(prometheus: Prometheus) -> None:
    def evaluated() -> bool:
        groups = prometheus.ask("rules")["groups"]
        return all(rule["lastEvaluation"] > "0002" for group in groups for rule in group["rules"])

    def near() -> set[str]:
        return {each["labels"]["alertname"] for each in prometheus.ask("alerts")["alerts"]}

    wait_until(evaluated)
    # There is one engine, so that this is to be seen.
    wait_until(lambda: "TickwireNoStandby" in near())
    # A scrape that a busy machine answers too late is over with the next one.
    wait_until(lambda: not near() & OF_THE_SERVICE)
