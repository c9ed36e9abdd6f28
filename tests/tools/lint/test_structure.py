"""What each rule of the structure refuses, and what it lets pass, planted in a small product."""

from __future__ import annotations

import pytest

from tools.lint import rules
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
