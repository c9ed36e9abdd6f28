"""Records every call of our own functions in this process, on all threads, while it is switched on."""

from __future__ import annotations

import dis
import inspect
import sys
import threading
import time
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

import msgspec

ROOT = Path(__file__).parents[2]
NOT_THE_PRODUCT = {"tests", "tools", "migrations", ".venv", "var", "clients"}


class Call(msgspec.Struct, array_like=True):
    """Of a function that begins. A coroutine that goes on after waiting was called before."""

    at_ns: int
    stack: tuple[str, ...]
    """Our functions from the outermost to the one that is called, each as `module:function`."""


class Tracer:
    def __init__(self) -> None:
        self.is_on = False
        self._calls: list[Call] = []

    def install(self) -> None:
        """On this thread, and on all that begin after this."""
        threading.settrace(self._enter)
        sys.settrace(self._enter)

    def start(self) -> None:
        self._calls = []
        self.is_on = True

    def stop(self) -> list[Call]:
        self.is_on = False
        return self._calls

    def _enter(self, frame: FrameType, event: str, argument: object) -> None:
        # Called for functions only: who returns nothing here is not asked about lines.
        if self.is_on and name_of(frame.f_code) and not goes_on(frame):
            self._calls.append(Call(time.monotonic_ns(), stack_of(frame)))


def stack_of(innermost: FrameType) -> tuple[str, ...]:
    names: list[str] = []
    frame: FrameType | None = innermost
    while frame is not None:
        if name := name_of(frame.f_code):
            names.append(name)
        frame = frame.f_back
    return tuple(reversed(names))


@cache
def name_of(code: CodeType) -> str:
    """Empty for what is not ours, and for the bodies of modules and classes, which importing runs."""
    path = Path(code.co_filename)
    if not path.is_relative_to(ROOT) or not code.co_flags & inspect.CO_OPTIMIZED:
        return ""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return "" if NOT_THE_PRODUCT & set(parts) else f"{'.'.join(parts)}:{code.co_qualname}"


def goes_on(frame: FrameType) -> bool:
    return frame.f_lasti > beginning(frame.f_code)


@cache
def beginning(code: CodeType) -> int:
    """Where a function is when it is called."""
    return next(each.offset for each in dis.get_instructions(code) if each.opname == "RESUME")


def encode(calls: list[Call]) -> bytes:
    return msgspec.json.encode(calls)


def decode(text: bytes) -> list[Call]:
    return msgspec.json.decode(text, type=list[Call])
