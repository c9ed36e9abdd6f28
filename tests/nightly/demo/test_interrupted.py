"""The past is made beside the service. Stopped or killed in the middle, it goes on at the next start."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import httpx
import pytest

from demo.past import LATER, MOST_AGAIN
from tests.patience import PATIENCE_S, wait_until
from tests.programs.commands import manage
from tests.programs.running import Serve

from .conftest import COMPLETE, PREPARE, keys_in, run

# Enough of them that some are left when it is interrupted, whatever the machine's speed.
FEW = PREPARE.replace(
    'exclude(symbol="BTCUSD")',
    'exclude(symbol__in=["BTCUSD", "EURUSD", "GBPUSD", "XAUUSD", "AAPL", "US500"])',
)
INSTRUMENTS, MAKERS = 7, 2
OF_THE_UNMADE = """
    opened_at < (SELECT min(until_at) FROM market_unfinishedpast)
    AND instrument_id IN (SELECT instrument_id FROM market_unfinishedpast WHERE made_at IS NULL)
"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared") / "var"
    run(folder, FEW)
    return folder


@pytest.fixture
def var_dir(prepared: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(prepared, tmp_path / "var"))


def number_of(var_dir: Path, table: str, where: str = "1") -> int:
    statement = f"SELECT count(*) FROM {table} WHERE {where}"  # noqa: S608 - names of our own
    with closing(sqlite3.connect(var_dir / "tickwire.sqlite3", timeout=PATIENCE_S)) as database:
        return int(database.execute(statement).fetchone()[0])


def makers_of(serve: Serve) -> list[int]:
    """The children of whichever of its threads; either may end meanwhile."""
    found: list[int] = []
    for children in Path(f"/proc/{serve.pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):
            for pid in map(int, children.read_text().split()):
                found += [pid] * (b"--beside" in Path(f"/proc/{pid}/cmdline").read_bytes())
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def made(serve: Serve) -> int:
    return max((int(number) for number in re.findall(r"being made: (\d+) of", serve.output)), default=0)


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def assert_whole(var_dir: Path, running: Serve) -> None:
    """All of it is there, and nothing twice: each interval is unique in the database already."""
    assert number_of(var_dir, "market_unfinishedpast") == 0
    assert number_of(var_dir, "market_candle", "timeframe = '1h'") >= 500 * INSTRUMENTS
    closed = number_of(var_dir, "signals_feed_signal", "status = 'closed' AND token IS NULL")
    assert 60 <= closed < 120
    headers = {"X-API-Key": keys_in(running.output)["premium"]}
    for symbol in ("BTCUSD", "EURUSD", "AAPL"):
        for timeframe in ("1m", "1h", "1d"):
            query = {"timeframe": timeframe, "bars": "500"}
            address = f"{running.url}/api/market/{symbol}"
            bars = httpx.get(address, params=query, headers=headers, timeout=PATIENCE_S).json()["ohlcv"]
            assert len({bar["time"] for bar in bars}) == 500, (symbol, timeframe)
    assert manage(var_dir, "verify_ledger").returncode == 0


def test_killed_in_the_middle_nobody_goes_on_alone_and_the_next_start_does(var_dir: Path) -> None:
    with Serve(var_dir) as running:
        wait_until(lambda: made(running) >= 2)
        makers = makers_of(running)
        kill(running.pid)
    wait_until(lambda: not any(map(is_running, makers)))
    assert makers
    left = number_of(var_dir, "market_unfinishedpast", "made_at IS NULL")
    assert 0 < left < INSTRUMENTS
    # What is there is whole: a past is written in one piece.
    assert number_of(var_dir, "market_candle", OF_THE_UNMADE) == 0

    with Serve(var_dir) as running:
        wait_until(lambda: COMPLETE in running.output)
        assert f"{INSTRUMENTS - left} of {INSTRUMENTS}" not in running.output
        assert_whole(var_dir, running)


def test_makers_that_are_killed_are_started_again(var_dir: Path) -> None:
    with Serve(var_dir) as running:
        wait_until(lambda: made(running) >= 1)
        for pid in makers_of(running):
            kill(pid)
        wait_until(lambda: COMPLETE in running.output)
        assert_whole(var_dir, running)


def test_makers_that_are_killed_again_and_again_are_given_up_with_a_word(var_dir: Path) -> None:
    killed: set[int] = set()

    def have_given_up() -> bool:
        for pid in makers_of(running):
            kill(pid)
            killed.add(pid)
        return LATER in running.output

    with Serve(var_dir) as running:
        wait_until(have_given_up)
    assert MAKERS < len(killed) <= MAKERS * (1 + MOST_AGAIN)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGSTOP])
def test_a_service_that_ends_ends_them_too(var_dir: Path, number: int) -> None:
    with Serve(var_dir) as running:
        wait_until(lambda: made(running) >= 1)
        makers = makers_of(running)
        if number == signal.SIGSTOP:
            # They do not end themselves.
            for pid in makers:
                os.kill(pid, number)
        else:
            os.kill(running.pid, number)
        running.stop()

    assert makers
    assert not any(map(is_running, makers))
    assert number_of(var_dir, "market_unfinishedpast", "made_at IS NULL") > 0
    assert "Traceback" not in running.output


def test_the_command_makes_the_rest_and_returns_when_all_is_there(var_dir: Path) -> None:
    with Serve(var_dir) as running:
        wait_until(lambda: made(running) >= 1)

        ended = manage(var_dir, "seed_demo")

        assert ended.returncode == 0, ended.stderr
        assert_whole(var_dir, running)
        assert (ended.stdout + running.output).count(COMPLETE) == 1


def test_without_the_demo_all_of_it_is_gone_though_it_was_half_made(var_dir: Path) -> None:
    with Serve(var_dir) as running:
        wait_until(lambda: made(running) >= 2)
        kill(running.pid)

    with Serve(var_dir, DEMO="0") as running:
        assert "Removing the demo data" in running.output
    for table in ("market_candle", "market_unfinishedpast", "market_lastquote", "signals_feed_signal"):
        assert number_of(var_dir, table) == 0, table
    assert number_of(var_dir, "news_newsitem") == 0
