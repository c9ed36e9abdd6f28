"""`make drill`: everything fails, one thing after the other, and what that did to whom is written down."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

_var = tempfile.TemporaryDirectory(prefix="tickwire-drill-")
os.environ |= {"VAR_DIR": _var.name, "DEMO": "0", "ACCESS_LOG": "0", "LOG_LEVEL": "ERROR"}
os.environ |= {"REDIS_URL": "", "DATABASE_URL": "", "SECRET_KEY": "drill", "KEY_PEPPER": "drill"}
# As it is shipped, and not as the gate runs it.
os.environ["DEADLINES_TIMES"] = "1"
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import tests.programs.patient.sitecustomize  # noqa: E402, F401 - as in the processes that it starts

import django  # noqa: E402 isort: skip

django.setup()
del os.environ["DJANGO_SETTINGS_MODULE"]

from tests.reliability.services.processes import ROOT  # noqa: E402

from .cases import CASES  # noqa: E402
from .loaded import Size  # noqa: E402
from .report import Row, results_of, tables, write  # noqa: E402

DOCUMENT = ROOT / "docs/reliability.md"


def main(wanted: list[str]) -> int:
    """`ONLY="redis_fails_over"` runs some cases; the page is written after all of them."""
    rows: list[Row] = []
    harmed: list[str] = []
    began_s = time.monotonic()
    chosen = [case for case in CASES if not wanted or case.__name__ in wanted]
    for case in chosen:
        directory = Path(_var.name) / case.__name__
        directory.mkdir()
        # The processes of PostgreSQL are of another user.
        Path(_var.name).chmod(0o755)
        for row, harm in results_of(case.__name__, case(directory, Size())):
            sys.stdout.write(f"{time.monotonic() - began_s:4.0f} s  {'  |  '.join(row)}\n")
            sys.stdout.flush()
            rows.append(row)
            harmed += [f"{row[0]} ({', '.join(harm)})"] if harm else []
    if len(chosen) == len(CASES):
        write(DOCUMENT, tables(rows))
    sys.stdout.write(f"Harm: {'; '.join(harmed)}\n" if harmed else "Without harm\n")
    return bool(harmed)


if __name__ == "__main__":
    sys.exit(main(os.environ.get("ONLY", "").split()))
