"""In production a module is loaded under one name only, and that name changes with what it imports. Files are
collected when those of this version are missing. A page names every module that its script imports, and what
others wrote lies as it came."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.storage import FileSystemStorage
from django.core.management.base import CommandError
from django.test import AsyncRequestFactory
from pytest_django.fixtures import Settings
from servestatic.middleware import ServeStaticMiddleware

from pages.static_files import COMMENT, HashedFiles, StaticFiles, are_collected, collect, without_comments
from pages.terminal import imports_of, modules_of
from tests.made_once import find_files

IMPORTED = re.compile(
    r"""(?:^(?:import|export)\s[^;]*?from\s*|import\(|import\.meta\.resolve\()"([./][^"]+)\"""", re.MULTILINE
)
HASHED = re.compile(r"\.[0-9a-f]{12}\.m?js$")


def collected(source: Path, target: Path) -> HashedFiles:
    files = HashedFiles(location=target, base_url="/static/")
    given = FileSystemStorage(source)
    names = [path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()]
    for name in names:
        with given.open(name) as content:
            files.save(name, content)
    for _, _, outcome in files.post_process({name: (given, name) for name in names}):
        assert not isinstance(outcome, Exception), outcome
    return files


@pytest.fixture
def static(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    for room in ("terminal", "docs", "site", "vendor"):
        shutil.copytree(settings.BASE_DIR / "static" / room, source / room)
    return source


def test_modules_import_each_other_by_hashed_names_and_are_sent_without_comments(
    static: Path, tmp_path: Path
) -> None:
    files = collected(static, tmp_path / "target")

    hashed = [Path(files.path(name)) for name in files.hashed_files.values() if name.endswith(".js")]
    imports = [(module.name, name) for module in hashed for name in IMPORTED.findall(module.read_text())]
    assert len(imports) > 15
    assert [each for each in imports if not HASHED.search(each[1])] == []
    for name in ("terminal/terminal.js", "site/theme.js"):
        sent = Path(files.path(files.hashed_files[name])).read_text().splitlines()
        given = (static / name).read_text().splitlines()
        assert len(sent) == len(given)
        assert not any(line.lstrip().startswith(("//", "/**")) for line in sent)
        assert any(line.lstrip().startswith("//") for line in given)
    vendored = "vendor/lightweight-charts-5.2.1/lightweight-charts.mjs"
    assert Path(files.path(files.hashed_files[vendored])).read_bytes() == (static / vendored).read_bytes()
    with (static / "terminal/streams/stream.js").open("a") as module:
        module.write("// changed\n")
    # A worker has another name once a module of it changes.
    worker, after = "terminal/streams/worker.js", collected(static, tmp_path / "after")
    assert files.hashed_files[worker] != after.hashed_files[worker]


SCRIPT = """/*! A licence. */
// Why.
const address = "https://host"; // Stays.
  /** More
   * of it. */
const after = `${1}`; /* Stays. */
"""


def test_only_whole_lines_are_comments() -> None:
    lines = SCRIPT.splitlines()
    left = [lines[0], "", lines[2], "", "", lines[5]]
    assert without_comments(SCRIPT.encode()).decode().splitlines() == left


@pytest.mark.parametrize("script", sorted(map(str, Path("static").glob("[!v]*/**/*.js"))))
def test_no_text_over_several_lines_looks_like_a_comment(script: str) -> None:
    """Within one, a backtick has begun that has not ended."""
    text = Path(script).read_bytes()
    for found in COMMENT.finditer(text):
        assert without_comments(text[: found.start()]).count(b"`") % 2 == 0, found[0]


@pytest.fixture
def source(settings: Settings, tmp_path: Path) -> Path:
    """The only file of an installation in production."""
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    settings.STATICFILES_DIRS = [tmp_path / "shipped"]
    settings.STATIC_ROOT = tmp_path / "var" / "static"
    settings.STORAGES = settings.STORAGES | {"staticfiles": {"BACKEND": "pages.static_files.HashedFiles"}}
    (tmp_path / "shipped").mkdir()
    file = tmp_path / "shipped" / "page.css"
    file.write_text("body { color: black }")
    return file


def test_files_are_collected_once_for_each_version(source: Path, settings: Settings) -> None:
    assert collect()
    assert not collect()
    assert len(list(settings.STATIC_ROOT.glob("page.*.css"))) == 1
    before, black = HashedFiles().hashed_files, source.read_text()
    # Of the same length, and a clock of the past.
    source.write_text("body { color: white }")
    os.utime(source, (0, 0))
    assert not are_collected()
    assert collect()
    assert are_collected()
    after = HashedFiles().hashed_files
    # The version before finds its own when it starts again.
    source.write_text(black)
    assert not collect()
    assert HashedFiles().hashed_files == before != after


def test_nothing_that_others_may_be_serving_is_away_for_a_moment(
    source: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.with_name("same.css").write_text("body { margin: 0 }")
    collect()
    source.write_text("body { color: white }")
    removed: list[Path] = []
    remove = os.remove

    def note_and_remove(path: str) -> None:
        removed.append(Path(path))
        remove(path)

    monkeypatch.setattr("os.remove", note_and_remove)
    collect()
    half = settings.STATIC_ROOT / ".half"
    assert [path for path in removed if not path.is_relative_to(half)] == []
    assert not half.exists()


def test_what_a_killed_process_left_half_is_collected_anew(source: Path, settings: Settings) -> None:
    half = settings.STATIC_ROOT / ".half"
    half.mkdir(parents=True)
    (half / "page.css").write_text("body {")
    collect()
    assert (settings.STATIC_ROOT / "page.css").read_text() == source.read_text()


TEXTS = ("body { color: black }", "body { color: white }")


async def served(files: StaticFiles, path: str) -> tuple[int, bytes]:
    answer: Any = await files.serve(scope_of(path))
    return (answer.status_code, answer.content) if answer else (404, b"")


def scope_of(path: str) -> dict[str, Any]:
    return dict(AsyncRequestFactory().get(path).scope)


async def test_each_version_serves_the_files_of_the_other(source: Path, monkeypatch: Any) -> None:
    names, running = [], []
    for text in TEXTS:
        await asyncio.to_thread(source.write_text, text)
        await asyncio.to_thread(collect)
        own = HashedFiles()
        monkeypatch.setattr("servestatic.middleware.staticfiles_storage", own)
        running.append(StaticFiles())
        names.append(own.url("page.css"))
    assert [[await served(files, name) for name in names] for files in running] == [
        [(200, text.encode()) for text in TEXTS]
    ] * 2
    for unknown in (
        "/static/page.0123456789ab.css",
        "/static/../0123456789ab.0123456789ab",
        "/static/%00.0123456789ab.css",
    ):
        assert await served(running[0], unknown) == (404, b"")


async def test_file_of_a_checkout_is_sent_whole_after_it_was_edited(
    source: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ServeStaticMiddleware, "add_files_from_finders", find_files)
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = settings.STORAGES | {"staticfiles": plain}
    files = StaticFiles()
    longer = "body { color: black; margin: 0 }"
    await asyncio.to_thread(source.write_text, longer)
    answer: Any = await files.serve(scope_of("/static/page.css"))
    assert int(answer["Content-Length"]) == len(longer)
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer.content.decode() == longer
    await asyncio.to_thread(source.with_name("new.css").write_text, longer)
    assert await served(files, "/static/new.css") == (200, longer.encode())
    assert await served(files, "/static/%00.css") == (404, b"")
    assert await served(files, "/static/nowhere.css") == (404, b"")


def test_a_folder_where_they_cannot_be_written_is_one_sentence(source: Path, tmp_path: Path) -> None:
    (tmp_path / "var").write_text("a file where the folder should be")
    with pytest.raises(CommandError, match="nothing can be written"):
        collect()


RESOLVED = re.compile(r"""import\.meta\.resolve\("\./(.*?)"\)""")


def test_imports_are_followed_to_the_end() -> None:
    found = modules_of("terminal/terminal.js", "terminal/panes.js")
    assert found[0] == "terminal/terminal.js"
    assert found.index("terminal/streams/link.js") < found.index("terminal/panes.js")
    assert {"terminal/api.js", "terminal/chart/chart.js", "terminal/chart/indicators/ema.js"} <= set(found)
    assert any(name.endswith("lightweight-charts.mjs") for name in found)
    assert len(set(found)) == len(found) > 40
    # What may wait is not named, and live prices do not wait for the chart.
    may_wait = ("keyboard/palette.js", "chart/tools/picture.js", "streams/worker.js")
    assert not {f"terminal/{name}" for name in may_wait} & set(found)
    assert not [name for name in modules_of("terminal/terminal.js") if "chart" in name and "menu" not in name]


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
    monkeypatch.setattr("pages.terminal.finders.find", lambda name: str(tmp_path / name))
    assert modules_of("one.js") == ("one.js", "in/two.js", "three.js", "four.js")


VENDOR = Path("static/vendor")
ENTRIES = json.loads((VENDOR / "vendor.json").read_text())


def sha384(path: Path) -> str:
    return "sha384-" + base64.b64encode(hashlib.sha384(path.read_bytes()).digest()).decode()


def test_every_vendored_file_is_listed_with_its_hash_beside_its_licence() -> None:
    listed = {name: digest for entry in ENTRIES for name, digest in entry["files"].items()}
    lying = {
        str(path.relative_to(VENDOR)): sha384(path)
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "vendor.json"
    }
    assert all(f"{entry['name']}-{entry['version']}/LICENSE" in lying for entry in ENTRIES)
    others = sorted({name for name, _ in lying.items() ^ listed.items()})
    assert not others, f"{', '.join(others)}: not as static/vendor/vendor.json has it (file and sha384)"
