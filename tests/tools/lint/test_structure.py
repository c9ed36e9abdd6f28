"""What each rule of the structure refuses, and what it lets pass, planted in a small product; the same of
elapsed time, one line of a test at a time."""

from __future__ import annotations

import pytest

from tools.lint import rules
from tools.lint.elapsed import BRIEF, COMPARED, MOST_EXCEPTIONS, PAUSE, UNNAMED, Module, judged
from tools.lint.modules import Product
from tools.lint.rules import Rule

DOOR = "from .candles import Bar\n__all__ = ['Bar']"
REFUSED: list[tuple[Rule, dict[str, str]]] = [
    (rules.order_of_rooms, {"accounts/a.py": "import market.runtime"}),
    (rules.order_of_rooms, {"news/a.py": "from status import models"}),
    (rules.order_of_rooms, {"demo/a.py": "def f():\n  from pages.terminal import x"}),
    (rules.order_of_parts, {"market/store/a.py": "from market.engine.bus import journal"}),
    (rules.order_of_parts, {"market/prices/a.py": "from .. import runtime", "market/runtime.py": ""}),
    (rules.order_of_parts, {"market/unlisted.py": ""}),
    (rules.doors, {"news/a.py": "from market.prices.candles import Bar"}),
    (rules.doors, {"news/a.py": "from market.prices import Tick", "market/prices/__init__.py": DOOR}),
    (
        rules.circles,
        {"core/a.py": "import core.b", "core/b.py": "from . import c", "core/c.py": "import core.a"},
    ),
    (rules.purity, {"instruments/hours.py": "from core.a import b", "core/a.py": "import django.db"}),
    (rules.purity, {"status/picture.py": "", "status/__init__.py": "import time"}),
    (rules.purity, {"status/__init__.py": ""}),
    (rules.late_imports, {"core/a.py": "def f():\n  import core.b"}),
    (rules.late_imports, {"core/a.py": "def f():\n  import httpx"}),
    (rules.names_in_strings, {"core/a.py": "x = 'core.b.C'", "core/b.py": ""}),
    (rules.order_of_rooms, {"core/a.py": "from tests.factories import make_key"}),
    (rules.constants, {"core/a.py": "MOST = 40\nMOST = 200"}),
    (rules.encoding, {"news/api.py": "from django.http import HttpResponse\nx = json.dumps(1)"}),
    (rules.encoding, {"news/api.py": "JsonResponse({})"}),
    (rules.private_names, {"tests/a.py": "cache._known"}),
    (rules.private_names, {"tests/a.py": "self.journal._file = full"}),
    (rules.private_names, {"tests/a.py": "f(x)._tasks"}),
    (rules.private_names, {"tests/a.py": "from market.runtime import _read"}),
]
ALLOWED: list[tuple[Rule, dict[str, str]]] = [
    (rules.order_of_rooms, {"market/runtime.py": "import accounts.models"}),
    (rules.order_of_parts, {"market/engine/a.py": "from market.store import checkpoints"}),
    (rules.doors, {"news/a.py": "from market.prices import Bar", "market/prices/__init__.py": DOOR}),
    (
        rules.doors,
        {"news/a.py": "from core.contract.errors import Refusal", "config/a.py": "import news.a.b"},
    ),
    (
        rules.circles,
        {"core/a/__init__.py": "from .b import C", "core/a/b.py": "import core.c", "core/c.py": ""},
    ),
    (
        rules.purity,
        {"instruments/hours.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n  import django"},
    ),
    (rules.late_imports, {"core/a.py": "def f():\n  import pyarrow.parquet"}),
    (rules.names_in_strings, {"core/a.py": "x = 'core.none', 'example.com'", "core/apps.py": "x = 'core.a'"}),
    (rules.constants, {"core/a.py": "MOST = {}\nMOST['a'] = 1\nMOST |= {}\n__all__ = []"}),
    (rules.encoding, {"news/language/a.py": "json.dumps(1)"}),
    (rules.private_names, {"tests/a.py": "self._known; super()._known(); row._meta; x.__class__; x._commit"}),
]
READING = """os.environ['PORT']
os.environ.get('PORT')
getenv('PORT')
os.environb[b'PORT']
'PORT' in environ
(os.environ | {})['PORT']
given = os.environ | {'A': 'b'}
run(env=(os.environ | {})['PORT'])
os.execve((os.environ | {})['SHELL'], [], {})
vars(os)['environ']['PORT']
getattr(os, 'getenv')('PORT')
from os import environ as e
print(os.environ.setdefault('PORT', '1'))""".splitlines()
SETTING = """os.environ.setdefault('A', 'b')
os.environ['A'] = 'b'
del os.environ['A']
run(env=os.environ | {'A': 'b'})
os.execve(program, words, os.environ | {'A': 'b'})""".splitlines()
REFUSED += [(rules.environment, {"core/a.py": line}) for line in READING]
ALLOWED += [(rules.environment, {"core/a.py": line}) for line in SETTING]


@pytest.mark.parametrize(("rule", "texts"), REFUSED)
def test_rule_sees_what_is_planted(rule: Rule, texts: dict[str, str]) -> None:
    assert len(list(rule(Product(texts)))) == 1


@pytest.mark.parametrize(("rule", "texts"), ALLOWED)
def test_rule_lets_the_rest_pass(rule: Rule, texts: dict[str, str]) -> None:
    assert list(rule(Product(texts))) == []


def test_each_rule_is_run_and_has_a_violation() -> None:
    run = {*rules.OF_ROOMS, *rules.OF_PROGRAMS, *rules.OF_TESTS}
    assert run == {rule for rule, _ in REFUSED} == {rule for rule, _ in ALLOWED}
    assert all(rule.__doc__ for rule in run)


BEGIN = """
import asyncio, subprocess, time
import httpx
import pytest
from market.fetching import Fetcher
from tests.patience import PATIENCE_S, until, wait_until
from websockets.sync.client import connect

LIMIT_S = 2.0

def took_s():
    began_s = time.monotonic()
    return time.monotonic() - began_s

async def seen():
    return 200, took_s()

class Crowd:
    def hear(self):
        self.heard_s.append(time.perf_counter() - self.began_s)

def make_fetcher() -> Fetcher: ...

async def test(crowd, loop, process, thread, page, clock, began_s, event, make: Fetcher):
"""
BY_SPEED = {
    COMPARED: [
        "assert time.monotonic() - began_s < LIMIT_S",
        "assert took_s() == pytest.approx(2, abs=0.1)",
        "assert all(heard_s < 1 for heard_s in crowd.heard_s)",
        "code, took = asyncio.run(seen()); assert took < 2",
        "assert wait_until(event) < LIMIT_S",
        "ends_at = time.monotonic() + LIMIT_S\n    while time.monotonic() < ends_at: pass",
        "opened_at = loop.time(); assert loop.time() - opened_at < LIMIT_S",
    ],
    BRIEF: [
        "await asyncio.wait_for(event(), LIMIT_S)",
        "wait_until(event, within_s=5)",
        "process.communicate(None, 10)",
        "assert event.wait(5)",
        "subprocess.run([], timeout=60)",
        "page.wait_for_selector('a', timeout=30_000)",
        "def helper(within_s: float = 20.0): ...",
    ],
    PAUSE: ["time.sleep(0.5)", "await asyncio.sleep(LIMIT_S)", "page.wait_for_timeout(300)"],
    UNNAMED: ["httpx.get('')", "connect('')"],
}
WITHOUT_SPEED = [
    "await asyncio.wait_for(event(), PATIENCE_S)",
    "ends_at = time.monotonic() + PATIENCE_S\n    while time.monotonic() < ends_at: pass",
    "assert took_s() < 600",
    "httpx.get('', timeout=PATIENCE_S); connect('', open_timeout=None)",
    "assert took_s() >= LIMIT_S",
    "now_ms = time.time_ns() // 1_000_000; assert event(now_ms - 500) == now_ms",
    "make_fetcher().fetch(timeout_s=0.3)",
    "make.fetch(timeout=2)",
    "clock.wait(57)",
    "while not event.wait(0.02): pass",
    "time.sleep(0.05)",
    "', '.join('ab')",
    "httpx.Client(transport=event)",
]


def found(line: str) -> list[str]:
    return [what for _, what in Module(f"{BEGIN}    {line}\n").follow().findings()]


@pytest.mark.parametrize(
    ("what", "line"), [(what, line) for what, lines in BY_SPEED.items() for line in lines]
)
def test_what_judges_speed_is_refused(what: str, line: str) -> None:
    assert set(found(line)) == {what}


@pytest.mark.parametrize("line", WITHOUT_SPEED)
def test_what_does_not_is_allowed(line: str) -> None:
    assert found(line) == []


def test_exceptions_are_needed_and_few() -> None:
    slow = [
        ("tests/a.py", "test_a", 3, PAUSE),
        ("tests/a.py", "test_b", 7, PAUSE),
        ("tests/b.py", "", 1, BRIEF),
    ]
    assert list(judged(slow, {"tests/a.py::test_a": "its subject", "tests/b.py": "its subject"})) == [
        f"tests/a.py:7: {PAUSE}"
    ]
    assert len(list(judged([], {"tests/c.py": "its subject"}))) == 1
    many = [(f"tests/{number}.py", "", 1, PAUSE) for number in range(MOST_EXCEPTIONS + 1)]
    assert len(list(judged(many, {path: "its subject" for path, *_ in many}))) == 1
