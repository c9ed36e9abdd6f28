"""What the nightly level measured, for docs/nightly.md: `make nightly` names the file."""

from __future__ import annotations

import json
import os
from pathlib import Path


def note(figure: str, target: str, measured: str, *, held: bool) -> None:
    if path := os.environ.get("FIGURES"):
        line = {"figure": figure, "target": target, "measured": measured, "held": held}
        with Path(path).open("a") as file:
            file.write(json.dumps(line) + "\n")
