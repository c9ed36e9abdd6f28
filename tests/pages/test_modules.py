"""A page names every module that its script imports, and none that is fetched only when it is wanted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pages.modules import imports_of, modules_of

RESOLVED = re.compile(r"""import\.meta\.resolve\("\./(.*?)"\)""")


def test_imports_are_followed_to_the_end() -> None:
    found = modules_of("terminal/terminal.js", "terminal/panes.js")
    assert found[0] == "terminal/terminal.js"
    assert found.index("terminal/streams/link.js") < found.index("terminal/panes.js")
    assert {"terminal/api.js", "terminal/chart/chart.js", "terminal/chart/indicators/ema.js"} <= set(found)
    assert any(name.endswith("lightweight-charts.mjs") for name in found)
    assert len(set(found)) == len(found) > 40


def test_live_prices_do_not_wait_for_the_chart() -> None:
    assert not [name for name in modules_of("terminal/terminal.js") if "chart" in name and "menu" not in name]


@pytest.mark.parametrize("name", ["keyboard/palette.js", "chart/tools/picture.js", "streams/worker.js"])
def test_what_may_wait_is_not_named(name: str) -> None:
    assert f"terminal/{name}" not in modules_of("terminal/terminal.js", "terminal/panes.js")


def test_what_an_outage_may_need_imports_only_what_the_page_has_loaded() -> None:
    """Its own address is another one at each attempt; those below it would stay those that failed."""
    static = Path("static")
    resolved = [
        (script.parent / name).relative_to(static).as_posix()
        for script in static.glob("terminal/**/*.js")
        for name in RESOLVED.findall(script.read_text())
    ]
    loaded = modules_of("terminal/terminal.js", "terminal/panes.js")
    assert "terminal/keyboard/palette.js" in resolved
    assert [name for script in resolved for name in imports_of(script) if name not in loaded] == []


def test_each_form_of_import_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    script = """
        import { a,
          b } from "./in/two.js";
        import "./three.js";
        export * from "./four.js";
        const later = () => import("./five.js");
        // import { six } from "./six.js" is no import.
    """
    files = {
        "one.js": "\n".join(line.strip() for line in script.splitlines()),
        "in/two.js": 'import "../four.js";',
    }
    for name in ("one.js", "in/two.js", "three.js", "four.js"):
        (tmp_path / name).write_text(files.get(name, ""))
    monkeypatch.setattr("pages.modules.finders.find", lambda name: str(tmp_path / name))
    assert modules_of("one.js") == ("one.js", "in/two.js", "three.js", "four.js")
