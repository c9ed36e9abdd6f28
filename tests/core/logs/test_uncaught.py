"""What nobody catches is one line of JSON without secrets, and the process still fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from accounts.key_text import generate_key

FAULT = """
import threading
import django
django.setup()
from core.process import log_uncaught
log_uncaught()
def fail():
    raise ValueError("no {key}")
{ending}
"""
AT_THE_END, IN_A_THREAD = "fail()", "t = threading.Thread(target=fail, name='one'); t.start(); t.join()"


@pytest.mark.served
@pytest.mark.parametrize(
    ("ending", "level", "code"), [(AT_THE_END, "critical", 1), (IN_A_THREAD, "error", 0)]
)
def test_uncaught_fault_is_a_line_without_secrets(tmp_path: Path, ending: str, level: str, code: int) -> None:
    key = generate_key()
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "VAR_DIR": str(tmp_path),
        "SECRET_KEY": "for-this-test-alone",
        "KEY_PEPPER": "and-this-one-as-well",
        "LOG_FORMAT": "json",
    }
    program = FAULT.format(key=key, ending=ending)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    (line,) = done.stderr.splitlines()
    told = json.loads(line)
    assert (done.returncode, told["level"]) == (code, level)
    assert "ValueError" in told["exception"]
    assert key[16:] not in line
