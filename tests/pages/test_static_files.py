"""In production a module is loaded under one name only, and that name changes with what it imports. Files are
collected when those of this version are missing."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from django.conf import settings
from django.core.files.storage import FileSystemStorage
from django.core.management.base import CommandError
from pytest_django.fixtures import Settings

from pages.static_files import HashedFiles, are_collected, collect

IMPORTED = re.compile(r"""^(?:import|export)\s.*?from\s*"([./][^"]+)";""", re.MULTILINE | re.DOTALL)
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
    for room in ("terminal", "docs", "vendor"):
        shutil.copytree(settings.BASE_DIR / "static" / room, source / room)
    return source


def test_modules_import_each_other_by_their_hashed_names(static: Path, tmp_path: Path) -> None:
    files = collected(static, tmp_path / "target")

    hashed = [Path(files.path(name)) for name in files.hashed_files.values() if name.endswith(".js")]
    imports = [(module.name, name) for module in hashed for name in IMPORTED.findall(module.read_text())]
    assert len(imports) > 15
    assert [each for each in imports if not HASHED.search(each[1])] == []


def test_worker_has_another_name_once_a_module_of_it_changes(static: Path, tmp_path: Path) -> None:
    before = collected(static, tmp_path / "before").hashed_files["terminal/streams/worker.js"]

    with (static / "terminal/streams/stream.js").open("a") as module:
        module.write("// changed\n")
    after = collected(static, tmp_path / "after").hashed_files["terminal/streams/worker.js"]

    assert before != after


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


def test_files_are_collected_once(source: Path, settings: Settings) -> None:
    assert collect()
    assert not collect()
    assert len(list(settings.STATIC_ROOT.glob("page.*.css"))) == 1


def test_files_of_another_version_are_collected_anew(source: Path) -> None:
    collect()
    # Of the same length, and a clock of the past.
    source.write_text("body { color: white }")
    os.utime(source, (0, 0))
    assert not are_collected()
    assert collect()
    assert are_collected()


def test_a_folder_where_they_cannot_be_written_is_one_sentence(source: Path, tmp_path: Path) -> None:
    (tmp_path / "var").write_text("a file where the folder should be")
    with pytest.raises(CommandError, match="nothing can be written"):
        collect()
