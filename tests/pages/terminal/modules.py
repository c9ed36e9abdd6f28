"""Modules of the terminal page in Node: those that need no page."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.programs.npm import NO_NODE

STATIC = Path("static").resolve()
RUN = """
const { default: run } = await import(process.argv[2]);
process.stdout.write(JSON.stringify(await run(JSON.parse(process.argv[3])) ?? null));
"""


def evaluate(folder: Path, module: str, body: str, given: Any = None) -> Any:
    """What the body of a function answers that has all exports of a module, and `given`."""
    if not shutil.which("node"):
        if os.environ.get("CI"):
            raise RuntimeError(NO_NODE)
        pytest.skip(NO_NODE)
    if not (folder / "static").exists():
        (folder / "static").symlink_to(STATIC)
        (folder / "package.json").write_text('{"type": "module"}')
    (folder / "run.js").write_text(RUN)
    (folder / "body.js").write_text(
        f'import * as all from "./static/terminal/{module}";\nexport default async (given) => {{ {body} }};\n'
    )
    # Files count as modules by the folder that they are reached through.
    command = [
        "node",
        "--preserve-symlinks",
        "--preserve-symlinks-main",
        str(folder / "run.js"),
        str(folder / "body.js"),
        json.dumps(given),
    ]
    done = subprocess.run(command, timeout=PATIENCE_S, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
