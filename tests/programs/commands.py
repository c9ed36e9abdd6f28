from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.patience import START_PATIENCE_S

from .running import environment


def manage(var_dir: Path, *command: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """`manage.py …` beside the running service, as a person types it."""
    return subprocess.run(
        [sys.executable, "manage.py", *command],
        env=environment(var_dir, **changes),
        capture_output=True,
        text=True,
        timeout=START_PATIENCE_S,
        check=False,
    )
