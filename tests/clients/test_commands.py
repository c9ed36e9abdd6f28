"""The commands for news, order flow, ticks, the archive and limits: a line each, in whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tickwire.cli import main

from .history.keeping import Answer, Keeper, Request, in_json, keeping

pytestmark = pytest.mark.served

AT = "2026-11-20T12:00:00.118Z"
FILE = "ticks/EURUSD/2026-11-20.parquet"
WINDOW = {"limit": 60, "remaining": 57, "reset": 1_795_262_412}
ANSWERS: dict[str, dict[str, Any]] = {
    "/api/news": {
        "items": [
            {
                "title": title,
                "category": "gold",
                "sentiment": "bullish",
                "sentiment_score": 0.4,
                "timestamp": AT,
            }
            for title in ("Newer", "Older")
        ]
    },
    "/api/orderflow/EURUSD": {
        "items": [
            {"time": AT, "bid_volume": 3e-05, "ask_volume": 1.0, "delta": 1.0, "cumulative_delta": -126.0}
            | {"absorptions": 1}
        ]
    },
    "/api/market/EURUSD/ticks": {
        "items": [{"timestamp": AT, "bid": 3e-05, "ask": 0.1, "spread": 0.1, "volume": 1.0, "seq": 7}],
        "next": None,
    },
    "/api/archive": {"items": [{"path": FILE, "bytes": 7_000}], "next": None},
    "/api/limits": {
        "tier": "free",
        "requests": WINDOW,
        "ai_calls": {"limit": 5, "remaining": 0, "reset": 1_795_305_600},
        "streams": {"limit": 2, "open": [{"path": "/ws/market", "age_seconds": 12}]},
    },
}


class Answering(Keeper):
    def answer(self, request: Request) -> Answer:
        answer = ANSWERS.get(request.path)
        return super().answer(request) if answer is None else in_json(answer)


Run = Callable[..., list[str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> list[str]:
        with keeping(Answering()) as keeper:
            keeper.files[FILE] = b"whole"
            assert main(["--key", "tw_live_any", "--url", keeper.url, *words]) == 0
        return capsys.readouterr().out.splitlines()

    return run


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["news"], [f"{AT}  gold   bullish +0.4   {title}" for title in ("Older", "Newer")]),
        (
            ["orderflow", "EURUSD"],
            [f"{AT}  bid_volume 0.00003  ask_volume 1.0  delta 1.0  cumulative_delta -126.0  absorptions 1"],
        ),
        (["ticks", "EURUSD"], [f"{AT}  0.00003 / 0.1  1.0"]),
        (
            ["ticks", "EURUSD", "--json"],
            [
                f'{{"timestamp": "{AT}", "bid": 0.00003, "ask": 0.1, '
                '"spread": 0.1, "volume": 1.0, "seq": 7}',
            ],
        ),
        (["archive"], [f"{FILE}  7,000 bytes"]),
        (
            ["limits"],
            [
                "requests: 57 of 60 left, more from 2026-11-21T12:00:12Z",
                "AI calls: 0 of 5 left, more from 2026-11-22T00:00:00Z",
                "streams: 1 of 2 open",
                "  /ws/market for 12 s",
            ],
        ),
    ],
)
def test_each_command_prints_what_the_service_answers(run: Run, words: list[str], lines: list[str]) -> None:
    assert run(*words) == lines


def test_files_of_the_archive_are_downloaded_into_a_folder(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "new" / "2026-11-20.parquet"
    assert run("archive", "--download", str(file.parent)) == [str(file)]
    assert file.read_bytes() == b"whole"
