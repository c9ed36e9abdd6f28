from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tools.mutants.swapping import NeedsFreshProcess, functions_by_file, plant

TEXT = """
def outer(factor):
    def inner(value):
        return value * factor
    return inner

class Sum:
    START = 1
    @property
    def value(self):
        return self.START + 1
    @classmethod
    def made(cls, start=2):
        return start - 1

double = outer(2)
"""


@pytest.fixture
def module(tmp_path: Path) -> SimpleNamespace:
    loaded: dict[str, Any] = {}
    path = str(tmp_path / "module.py")
    exec(compile(TEXT, path, "exec"), loaded)  # noqa: S102 - stands for an import
    return SimpleNamespace(path=path, **{name: loaded[name] for name in ("Sum", "outer", "double")})


def fault(module: SimpleNamespace, text: str) -> None:
    plant(module.path, TEXT, text, functions_by_file()[module.path])


def test_functions_that_are_there_get_the_fault(module: SimpleNamespace) -> None:
    fault(module, TEXT.replace("value * factor", "value + factor"))
    assert (module.outer(3)(3), module.double(3)) == (6, 5)


def test_methods_get_it_whatever_wraps_them(module: SimpleNamespace) -> None:
    fault(module, TEXT.replace("self.START + 1", "self.START - 1"))
    assert module.Sum().value == 0
    fault(module, TEXT.replace("start - 1", "start + 1"))
    assert module.Sum.made() == 3


@pytest.mark.parametrize(("old", "new"), [("START = 1", "START = 2"), ("start=2", "start=3")])
def test_what_runs_at_import_needs_a_fresh_process(module: SimpleNamespace, old: str, new: str) -> None:
    with pytest.raises(NeedsFreshProcess):
        fault(module, TEXT.replace(old, new))
