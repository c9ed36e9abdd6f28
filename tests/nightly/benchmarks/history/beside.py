"""What ten walks cost the others: how long quotes wait, how long the loop was held, and how much memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from statistics import quantiles
from typing import IO

import msgspec

from tests.programs.installation import SETTINGS

from .walk import KEPT_FOR_GOOD

QUOTES_A_SECOND = 200


class Held(msgspec.Struct):
    """What the loop's own watch saw, in the process that serves."""

    longest_step_ms: float
    """The most processor time that a task used before it gave the loop back: how long others were blocked."""
    longest_ms: float
    """The most that all of them used between two looks of the watch, a millisecond and what went beyond."""
    work_p999_ms: float
    """What one in a thousand such stretches went beyond. The longest is often the collector of garbage, or
    the machine, which takes a core away for a moment and counts that as work."""
    memory_mb: float


class Round(Held):
    quote_p50_ms: float
    quote_p99_ms: float


def measure(directory: str, bars: int, seconds: float, rounds: int) -> tuple[list[Round], list[Round]]:
    """Without walks and with them, in turns."""
    alone, beside = [], []
    with served(directory, bars) as (commands, answers, port, key):
        # The first request finds the routes, which a service that has been asked for its health knows.
        waits_ms(port, key, 0.1)
        for _ in range(rounds):
            alone.append(one_round(commands, answers, port, key, seconds))
            with walking(port, key):
                # The first part of a page takes connections and statements that are kept.
                time.sleep(1)
                beside.append(one_round(commands, answers, port, key, seconds))
    return alone, beside


@contextmanager
def served(directory: str, bars: int) -> Iterator[tuple[IO[str], IO[str], int, str]]:
    own = os.environ | SETTINGS | {"VAR_DIR": directory} | KEPT_FOR_GOOD
    command = [sys.executable, "-m", "tests.nightly.benchmarks.history.served", str(bars)]
    with subprocess.Popen(
        command, env=own, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port, key = process.stdout.readline().split()
        try:
            yield process.stdin, process.stdout, int(port), key
        finally:
            process.stdin.close()
            process.wait(60)


@contextmanager
def walking(port: int, key: str) -> Iterator[None]:
    command = [sys.executable, "-m", "tests.nightly.benchmarks.history.walkers", str(port), key]
    process = subprocess.Popen(command)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def one_round(commands: IO[str], answers: IO[str], port: int, key: str, seconds: float) -> Round:
    say(commands, "watch")
    times = waits_ms(port, key, seconds)
    say(commands, "tell")
    cuts, held = quantiles(times, n=100), msgspec.json.decode(answers.readline(), type=Held)
    return Round(**msgspec.structs.asdict(held), quote_p50_ms=cuts[49], quote_p99_ms=cuts[98])


def say(commands: IO[str], word: str) -> None:
    commands.write(f"{word}\n")
    commands.flush()


def waits_ms(port: int, key: str, seconds: float) -> list[float]:
    """Of quotes that are asked for at an even pace."""
    connection, waits = HTTPConnection("127.0.0.1", port, timeout=60), []
    ends_s = due_s = time.perf_counter()
    ends_s += seconds
    while due_s < ends_s:
        time.sleep(max(0.0, due_s - time.perf_counter()))
        asked_s = time.perf_counter()
        connection.request("GET", "/api/market/EURUSD/quote", headers={"X-API-Key": key})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"a quote was answered with {answer.status}")
        waits.append(1000 * (time.perf_counter() - asked_s))
        due_s += 1 / QUOTES_A_SECOND
    connection.close()
    return waits
