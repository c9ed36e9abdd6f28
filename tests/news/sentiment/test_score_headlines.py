from __future__ import annotations

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.patience import PATIENCE_S
from tests.programs.running import environment

pytestmark = pytest.mark.served

LINES = (
    b"Gold rises to a record as the dollar slips\n"
    b"\n"
    b"   \t \r\n"
    b"Bitcoin plunges after exchange halts withdrawals\r\n"
    b"\xff\xfe\xfa not UTF-8\n"
    b"Euro \x00\x1b[31m falls \x07 again\n"
    b"\xe9\x87\x91\xe4\xbe\xa1\xe6\xa0\xbc\xe3\x81\x8c\xe4\xb8\x8a\xe6\x98\x87\n"
    + b"Dollar climbs "
    + b"x" * 300_000
    + b"\nStocks fall"
)


def score_given(var_dir: Path, given: bytes) -> subprocess.CompletedProcess[bytes]:
    """In a process of its own, whose database and broker would not answer if anybody asked."""
    nobody = {"DATABASE_URL": "postgresql://127.0.0.1:1/none", "REDIS_URL": "redis://127.0.0.1:1/0"}
    return subprocess.run(
        [sys.executable, "manage.py", "score_headlines", "-"],
        env=environment(var_dir, **nobody),
        input=given,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    ended = score_given(tmp_path_factory.mktemp("var"), LINES)
    assert (ended.returncode, ended.stderr) == (0, b"")
    return [json.loads(line) for line in ended.stdout.splitlines()]


def test_each_title_has_one_object_of_four_members_a_line(answers: list[dict[str, Any]]) -> None:
    assert [answer["title"][:12] for answer in answers] == [
        *("Gold rises t", "Bitcoin plun", "��� not UTF-", "Euro \x00\x1b[31m "[:12], "金価格が上昇"),
        *("Dollar climb", "Stocks fall"),
    ]
    assert {tuple(answer) for answer in answers} == {("title", "sentiment", "sentiment_score", "model")}
    assert {answer["model"] for answer in answers} == {"tickwire-linear-1"}
    (gold, *_, stocks) = answers
    assert (gold["sentiment"], gold["sentiment_score"] >= 0.15) == ("bullish", True)
    assert (stocks["sentiment"], stocks["sentiment_score"] <= -0.15) == ("bearish", True)


def test_file_is_read_like_standard_input(tmp_path: Path, answers: list[dict[str, Any]]) -> None:
    (tmp_path / "titles.txt").write_bytes(LINES)
    out = StringIO()
    call_command("score_headlines", str(tmp_path / "titles.txt"), stdout=out)
    assert [json.loads(line) for line in out.getvalue().splitlines()] == answers


def test_missing_file_is_told_in_one_sentence() -> None:
    with pytest.raises(CommandError, match="^absent.txt cannot be read: No such file or directory.$"):
        call_command("score_headlines", "absent.txt")


def test_category_of_all_titles_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "titles.txt").write_text("Rate cut surprises traders\n")
    scores = []
    for category in ("forex", "macro"):
        out = StringIO()
        call_command("score_headlines", str(tmp_path / "titles.txt"), category=category, stdout=out)
        scores.append(json.loads(out.getvalue())["sentiment_score"])
    assert scores[0] < 0 < scores[1]
