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
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django  # noqa: E402

django.setup()
del os.environ["DJANGO_SETTINGS_MODULE"]

from tests.reliability.services.processes import ROOT  # noqa: E402

from .report import is_harmless, row_not_over, row_of, table, write  # noqa: E402
from .scenes import SCENES  # noqa: E402
from .stage import Size  # noqa: E402

DOCUMENT = ROOT / "docs/reliability.md"


def main(wanted: list[str]) -> int:
    """`ONLY="redis_fails_over"` plays some scenes; the page is written after all of them."""
    rows: list[tuple[str, ...]] = []
    harmed: list[str] = []
    began_s = time.monotonic()
    chosen = [scene for scene in SCENES if not wanted or scene.__name__ in wanted]
    for scene in chosen:
        directory = Path(_var.name) / scene.__name__
        directory.mkdir()
        # The processes of PostgreSQL are of another user.
        Path(_var.name).chmod(0o755)
        try:
            for damage, sockets in scene(directory, Size()):
                row = row_of(damage, sockets)
                sys.stdout.write(f"{time.monotonic() - began_s:4.0f} s  {'  |  '.join(row)}\n")
                sys.stdout.flush()
                rows.append(row)
                harmed += [] if is_harmless(damage) else [damage.name]
        except AssertionError as error:
            sys.stdout.write(f"{scene.__name__} was not got over: {error}\n")
            rows.append(row_not_over(scene.__name__, str(error)))
            harmed.append(scene.__name__)
    if len(chosen) == len(SCENES):
        write(DOCUMENT, table(rows))
    sys.stdout.write(f"Without harm but for: {', '.join(harmed)}\n" if harmed else "Without harm\n")
    return bool(harmed)


if __name__ == "__main__":
    sys.exit(main(os.environ.get("ONLY", "").split()))
