from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.patience import PATIENCE_S, wait_until
from tests.programs.commands import manage
from tests.programs.running import Serve

COMPLETE = "The demo's past is complete"
WIDE = """
from accounts.models import Tier
from accounts.limits.tiers import save_tier
tier = Tier.objects.get(name="premium")
tier.requests_per_minute = 100_000
save_tier(tier, by="test")
"""


@pytest.fixture(scope="session")
def var_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "var"


@pytest.fixture(scope="module")
def demo(var_dir: Path) -> Iterator[Serve]:
    """The demo, served from an empty folder the first time, with its whole past."""
    with Serve(var_dir) as running:
        wait_until(lambda: COMPLETE in running.output)
        yield running


@pytest.fixture(scope="module")
def keys(demo: Serve) -> dict[str, str]:
    return keys_in(demo.output)


@pytest.fixture(scope="module")
def roomy_key(demo: Serve, var_dir: Path) -> str:
    """These tests ask more often a minute than any tier allows."""
    key = manage(var_dir, "issue_key", "tester", "--tier", "premium").stdout.strip()
    manage(var_dir, "shell", "-c", WIDE).check_returncode()
    return key


@pytest.fixture(scope="module")
def get(demo: Serve, roomy_key: str) -> Iterator[Any]:
    with httpx.Client(base_url=demo.url, headers={"X-API-Key": roomy_key}, timeout=PATIENCE_S) as client:
        yield client.get


def keys_in(banner: str) -> dict[str, str]:
    words = banner.split()
    return {tier: words[words.index(tier) + 1] for tier in ("free", "pro", "premium")}


PREPARE = """
from django.core.management import call_command
from instruments.models import Instrument
call_command("migrate", verbosity=0)
call_command("load_instruments", verbosity=0)
Instrument.objects.exclude(symbol="BTCUSD").delete()
"""


def prepare_small(var_dir: Path) -> Path:
    """BTCUSD, and TEST that the demo adds."""
    run(var_dir, PREPARE)
    return var_dir


def run(var_dir: Path, code: str, **changes: str) -> str:
    """A few lines in the shell of the installation; what they print."""
    done = manage(var_dir, "shell", "-v", "0", "-c", code, **changes)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
