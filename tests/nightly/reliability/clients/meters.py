"""Healthy clients in C: how late ticks come to those who read. Python would be late itself."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from tests.nightly.benchmarks.streams.places import GCC, HERE
from tests.reliability.services.processes import ROOT

CLIENT = HERE / "client"
SOURCES = (ROOT / "tests/nightly/reliability/clients/meter/meter.c", CLIENT / "net.c", CLIENT / "measure.c")


class Heard(msgspec.Struct, frozen=True):
    frames: int
    missed: int
    ended: int
    refused: int
    p50_ms: float
    p99_ms: float
    most_ms: float


# Ticks are pushed as often as this, and one push that comes late is no harm that an attack did.
ONE_PUSH_MS = 50.0
MOST_RISE = 1.1
MOST_TRIALS = 3


class Trial(NamedTuple):
    """What was heard before the harm, meanwhile and after it."""

    before: Heard
    during: Heard
    after: Heard

    @property
    def is_unharmed(self) -> bool:
        """Against the worse control of the same minute."""
        return self.during.p99_ms <= max(allowed_ms(self.before), allowed_ms(self.after))

    @property
    def lost(self) -> int:
        return sum(heard.missed + heard.ended for heard in self)

    def __str__(self) -> str:
        return f"{self.before.p99_ms:.0f} → {self.during.p99_ms:.0f} → {self.after.p99_ms:.0f} ms"


class Judged(Protocol):
    @property
    def is_unharmed(self) -> bool: ...


Tried = TypeVar("Tried", bound=Judged)


def tried(attempt: Callable[[], Tried]) -> list[Tried]:
    """Whatever else the machine does harms too, but not every time: only what harms each time is ours."""
    trials = [attempt()]
    while not trials[-1].is_unharmed and len(trials) < MOST_TRIALS:
        trials.append(attempt())
    return trials


def allowed_ms(control: Heard) -> float:
    """A tenth more, and one push."""
    return MOST_RISE * control.p99_ms + ONE_PUSH_MS


class Meter:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def take(self) -> Heard:
        """What was heard since it was last asked."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return msgspec.json.decode(self._line(), type=Heard)

    def wait_until_ready(self) -> None:
        assert self._line() == "ready\n"

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = str(self._process.stdout.readline())
        assert line, "The meter has ended"
        return line


@contextmanager
def listening(port: int, path: str, message: Mapping[str, Any], clients: int) -> Iterator[Meter]:
    """From the moment in which each of them has been let in."""
    command = [str(built()), str(port), path, str(clients), json.dumps(message)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            meter = Meter(process)
            meter.wait_until_ready()
            yield meter
        finally:
            process.terminate()


def built() -> Path:
    """Once for each state of its sources, whoever asks first."""
    text = b"".join(path.read_bytes() for path in (*SOURCES, *sorted(CLIENT.glob("*.h"))))
    place = Path(tempfile.gettempdir()) / f"tickwire-meter-{hashlib.sha256(text).hexdigest()[:16]}"
    if not place.exists():
        made = place.with_name(f"{place.name}-{os.getpid()}")
        subprocess.run([*GCC, f"-I{CLIENT}", *SOURCES, "-o", made], check=True)
        made.replace(place)
    return place
