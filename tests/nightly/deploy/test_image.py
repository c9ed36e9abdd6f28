"""What the image is made of. `make image-check` builds and starts it."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import requires

from config.environment.variables import VARIABLES
from serving.readiness.answers import READYZ
from tools.lint.modules import ROOT

DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text()
LET_IN = {
    line.removeprefix("!").rstrip("/")
    for line in (ROOT / ".dockerignore").read_text().splitlines()
    if line.startswith("!")
}
WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]


def test_everything_that_the_wheel_holds_is_let_in_and_nothing_else() -> None:
    locks = {"requirements-archive.lock", "requirements-dev.lock"}
    needed = {*locks, "README.md", "pyproject.toml", "tickwire_server"}
    assert {*WHEEL["only-include"], *needed, "deploy/ready.py"} == LET_IN
    assert all((ROOT / name).exists() for name in LET_IN)


def test_all_variables_that_it_sets_are_known() -> None:
    own = {"PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}
    names = set(re.findall(r"\b([A-Z][A-Z_]+)=", DOCKERFILE)) - own - {"BASE"}
    assert names <= set(VARIABLES)
    assert {"VAR_DIR", "STATIC_ROOT", "PRODUCTION", "HOST", "PORT"} <= names


def test_it_starts_without_a_shell_and_asks_where_the_service_answers() -> None:
    assert f'"{READYZ}"' in (ROOT / "deploy/ready.py").read_text()
    assert re.findall(r"\bPORT=(\d+)", DOCKERFILE) == re.findall(r"EXPOSE (\d+)", DOCKERFILE)
    last = DOCKERFILE.rpartition("FROM")[2]
    assert re.findall(r"^(?:ENTRYPOINT|CMD|\s+CMD) (\[)?", last, re.M) == ["[", "[", "["]


def test_what_builds_the_wheel_is_named_with_all_that_it_needs() -> None:
    needed = {
        re.split(r"[^\w-]", each)[0] for each in requires("hatchling") or () if "python_version" not in each
    }
    (named,) = re.findall(r"is_wanted = /\^\(([\w|-]+)\)", DOCKERFILE)
    assert set(named.split("|")) == {"hatchling", *needed}


def test_what_it_installs_is_what_the_tests_ran_with() -> None:
    """The locks are renewed one after the other, so that each holds what the one before it has."""
    plain, archive, dev = (
        set(re.findall(r"^[\w.-]+==\S+", (ROOT / f"requirements{name}.lock").read_text(), re.M))
        for name in ("", "-archive", "-dev")
    )
    assert "-r requirements-archive.lock" in (ROOT / "docs/operate/install.md").read_text()
    assert "--requirement requirements-archive.lock" in DOCKERFILE
    assert plain < archive < dev
    assert {each.partition("==")[0] for each in archive - plain} >= {"pyarrow", "boto3"}
