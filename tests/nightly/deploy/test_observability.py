"""The rules and the dashboard: valid, tested case by case, explained, and about metrics that there are."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.programs.debian import require_debian

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


@pytest.mark.parametrize(("was", "becomes"), [("== 0", "== 5"), ("> 0.05", "> 0.0001"), ("0.02", "0.9")])
def test_control_a_rule_that_says_something_else_is_found(tmp_path: Path, was: str, becomes: str) -> None:
    for file in FILES.glob("alerts*.yml"):
        (tmp_path / file.name).write_text(file.read_text())
    changed = (tmp_path / "alerts.yml").read_text().replace(was, becomes)
    (tmp_path / "alerts.yml").write_text(changed)
    assert promtool("test", "rules", "alerts.test.yml", within=tmp_path).returncode == 1


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


def test_panels_ask_whichever_source_is_chosen_and_do_not_overlap() -> None:
    panels = json.loads((FILES / "dashboard.json").read_text())["panels"]
    assert all(panel["datasource"]["uid"] == "${source}" for panel in panels if panel["type"] != "row")
    places = [panel["gridPos"] for panel in panels]
    taken = [
        (x, y)
        for at in places
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) < 24
