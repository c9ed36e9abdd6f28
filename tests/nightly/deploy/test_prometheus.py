"""The rules and the dashboard: valid, tested case by case, explained, and about metrics that there are, as a
real Prometheus scrapes them of a real service and a real engine."""

from __future__ import annotations

import json
import re
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
from tests.reliability.services.processes import Installation, logged
from tests.reliability.services.supervised import supervised

ROOT = Path(__file__).parents[3]
FILES = ROOT / "deploy" / "observability"
RUNBOOK = ROOT / "docs" / "operate" / "runbook.md"
SEVERITIES = {"critical", "warning"}


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((FILES / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> list[str]:
    """Of all rules and all panels."""
    panels = json.loads((FILES / "dashboard.json").read_text())["panels"]
    drawn = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    return [*drawn, *(rule["expr"] for rule in rules())]


def metrics_in(expression: str) -> set[str]:
    without_labels = re.sub(r"\{[^}]*\}", "", expression)
    return set(re.findall(r"\b((?:tickwire|process)_\w+|up\b)", without_labels))


def promtool(*arguments: str, within: Path = FILES) -> subprocess.CompletedProcess[str]:
    command = [require_debian("promtool", "prometheus"), *arguments]
    return subprocess.run(command, cwd=within, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", "alerts.yml"),
        ("check", "config", "prometheus.yml"),
        ("test", "rules", "alerts.test.yml"),
    ],
    ids=" ".join,
)
def test_promtool_finds_no_fault(arguments: tuple[str, ...]) -> None:
    answer = promtool(*arguments)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize("folder", ["observability", "prometheus"])
def test_what_is_commented_out_tells_an_alertmanager(tmp_path: Path, folder: str) -> None:
    text = (FILES.parent / folder / "prometheus.yml").read_text()
    without_marks = re.sub(r"^#(?=alerting:|  )", "", text, flags=re.MULTILINE)
    named = without_marks.replace("/etc/prometheus/observability", str(FILES))
    (tmp_path / "prometheus.yml").write_text(named)
    (tmp_path / "alerts.yml").write_text((FILES / "alerts.yml").read_text())
    answer = promtool("check", "config", "prometheus.yml", within=tmp_path)

    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "alerting" not in yaml.safe_load(text)
    (manager,) = yaml.safe_load(named)["alerting"]["alertmanagers"]
    assert manager["static_configs"][0]["targets"][0].endswith(":9093")


def test_each_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    cases = yaml.safe_load((FILES / "alerts.test.yml").read_text())["tests"]
    looks = [look for case in cases for look in case["alert_rule_test"]]
    names = {rule["alert"] for rule in rules()}
    assert {look["alertname"] for look in looks if look.get("exp_alerts")} == names
    assert {look["alertname"] for look in looks if not look.get("exp_alerts")} == names


def test_each_alert_says_how_bad_it_is_and_its_section_in_the_runbook_what_to_do() -> None:
    sections = RUNBOOK.read_text().split("\n## ")[1:]
    assert [section.split("\n", 1)[0] for section in sections] == [rule["alert"] for rule in rules()]
    for rule, section in zip(rules(), sections, strict=True):
        annotations = rule["annotations"]
        assert rule["labels"]["severity"] in SEVERITIES
        assert annotations["summary"]
        assert annotations["runbook"] == f"docs/operate/runbook.md#{rule['alert'].lower()}"
        for begin in (r"\*\*(Critical|Warning)\.\*\* [`\w]", "- See: ", "- Do: "):
            assert re.search(f"^{begin}", section, re.MULTILINE), rule["alert"]


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
    with logged(command, directory / "prometheus.log"):
        yield Prometheus(port)


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
