"""The version that a process runs, looked up as docs/operate/upgrade.md says."""

from __future__ import annotations

import re
import subprocess

from tests.reliability.services.processes import ROOT

PAGE = (ROOT / "docs/operate/upgrade.md").read_text()
(COMMAND,) = re.findall(r"^ *(curl .*tickwire_version)$", PAGE, re.MULTILINE)
# Of the first web process of the units.
PORT = ":18001/"


def told_version(port: int) -> str:
    """Empty where the command finds nothing."""
    assert PORT in COMMAND
    ran = subprocess.run(
        ["sh", "-c", COMMAND.replace(PORT, f":{port}/")], capture_output=True, text=True, check=False
    )
    return "".join(re.findall(r'^tickwire_version\{version="([^"]+)"\}', ran.stdout, re.MULTILINE))
