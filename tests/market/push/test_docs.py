"""docs/ingest.md is the only reference of pushing, so it is held to the code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from core.contract.errors import ApiError
from market.engine.push_queue import IngestUnavailable
from market.push import keys
from market.push.consumer import CLOSES, TOO_MANY_INVALID
from market.streams.protocol.messages import RESTARTING
from serving.websocket.bounds import TOO_BIG, TOO_MANY
from tests.client import Server
from tests.patience import PATIENCE_S

TEXT = (Path(__file__).resolve().parents[3] / "docs/ingest.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """The cells of the table that begins so."""
    table = TEXT[TEXT.index(heading) :].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


def test_docs_tell_each_reason_in_its_own_sentence_and_no_other() -> None:
    assert rows("| Code | Sentence |") == [[f"`{code}`", why] for code, why in keys.REASONS.items()]


def test_docs_tell_every_status_of_an_answer_and_every_close_of_a_socket() -> None:
    told = {
        (int(number), code)
        for number, codes, *_ in rows("| Status | Code |")
        for code in re.findall(r"`(\w+)`", codes)
    }
    kinds = [kind for kind in vars(keys).values() if isinstance(kind, type)]
    made = {(kind.status_code, kind.code) for kind in kinds if issubclass(kind, ApiError)}
    made.add((IngestUnavailable.status_code, IngestUnavailable.code))
    assert made - told == {
        (408, "auth_timeout"),
        (429, "too_many_messages"),
    }
    numbers = {int(number) for number, *_ in rows("| Close | Code |")}
    assert numbers == {*CLOSES.values(), TOO_BIG, TOO_MANY, TOO_MANY_INVALID, RESTARTING}


def test_script_of_the_docs_sends_what_it_reads_and_ends_with_the_reason_at_a_bad_key(
    service: Server, key: str, symbol: str, tmp_path: Path
) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    script = tmp_path / "push.py"
    script.write_text(block.replace("http://127.0.0.1:8000", service.url))

    def run(key: str, quotes: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(script), key]
        return subprocess.run(command, input=quotes, capture_output=True, text=True, timeout=PATIENCE_S)

    done = run(key, f"{symbol} 1.5 1.75\n{symbol} 1.5 1.75\n{symbol} 2 1\n")
    first, second, third = done.stdout.splitlines()
    assert first == second == "{'accepted': 1, 'rejected': []}"
    assert "'crossed'" in third
    done = run("nonsense", "EURUSD 1 2\n")
    assert done.returncode == 1
    assert "invalid_ingest_key" in done.stderr
