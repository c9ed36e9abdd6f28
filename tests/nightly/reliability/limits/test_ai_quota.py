"""Row 68: that the exact quota is no accident, by processes that do not count together."""

from __future__ import annotations

from pathlib import Path

import pytest

from accounts.key_text import generate_key
from accounts.keys.issuing import issue_key
from tests.factories import make_account
from tests.reliability.clients.crowd import rush_for
from tests.reliability.fixtures import Tell, sqlite_in
from tests.reliability.limits.test_ai_quota import CROWD, LIMIT, SYMBOLS, made, paths_of, prepare

pytestmark = [pytest.mark.usefixtures("rows"), pytest.mark.row("68", "exactly the limit is used")]


def test_control_with_separate_databases_a_crowd_gets_too_many(tmp_path: Path, tell: Tell) -> None:
    """Where two processes do not count together, this is what the harness sees."""
    apart, secret = [], generate_key()
    for directory in (tmp_path / "one", tmp_path / "other"):
        directory.mkdir()
        installation = sqlite_in(directory)
        apart.append(installation)
        prepare(installation, SYMBOLS[:CROWD])
        with installation.orm():
            issue_key(make_account(tier="five"), "test", by="test", secret=secret)
    with apart[0].serve(1) as first, apart[1].serve(1) as second:
        answers = rush_for([*first, *second], [secret], paths_of(0))
    tell(f"analyses made for {CROWD} requests: {made(answers)}")
    assert made(answers) == 2 * LIMIT
