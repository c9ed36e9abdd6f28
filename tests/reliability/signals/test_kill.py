"""Row 5 for signals: kill -9 at the n-th write of a publisher, n = 1 … 24: a publication and a closure."""

from __future__ import annotations

import subprocess
from collections import Counter
from typing import NamedTuple

import pytest
from django.contrib.auth.models import Permission

from accounts.models import User
from accounts.rights import MAY_PUBLISH
from signals_feed.ledger.ledger import LedgerEntry
from signals_feed.ledger.verify import verify
from signals_feed.models import Announcement, Evidence, Signal
from tests.factories import make_instrument, make_user
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import ROOT, Installation, tied

from .signal_writer import ACTS

LAST = 24
WITHIN_S = 300
pytestmark = pytest.mark.row("5", "no acknowledged signal lost, none duplicated, the ledger intact")


class Outcome(NamedTuple):
    killed: int
    acts: int
    lost: int
    """Acknowledged, and not in the database."""
    doubled: int
    """More signals than acts."""
    torn: int
    """Signals of which a part is missing: evidence, announcement or ledger entry."""


def lives(installation: Installation, symbol: str, mode: str, last: int) -> Outcome:
    with installation.orm():
        make_instrument(symbol)
        user = make_user(f"publisher-{symbol.lower()}")
        allow(user)
    command = tied(
        "-m", "tests.reliability.signals.signal_writer", "1", str(last), symbol, user.username, mode
    )
    environment = installation.environment(
        DJANGO_SETTINGS_MODULE="config.settings",
        PUBLICATIONS_PER_MINUTE="0",
        ACTIVE_SIGNALS_PER_PUBLISHER="0",
    )
    done = subprocess.run(
        command, cwd=ROOT, env=environment, timeout=WITHIN_S, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line.split() for line in done.stdout.splitlines()]
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    with installation.orm():
        return reckon(symbol, lines)


def allow(user: User) -> None:
    codename = MAY_PUBLISH.partition(".")[2]
    user.user_permissions.add(Permission.objects.get(codename=codename))


def reckon(symbol: str, lines: list[list[str]]) -> Outcome:
    acknowledged = {what[1]: what[2] for what in lines if what[0] == "done"}
    killed = sum(what == ["ended", what[1], "9"] for what in lines)
    signals = {str(signal.pk): signal for signal in Signal.objects.filter(instrument__symbol=symbol)}
    # The last life's unfinished act may have got through, as may those that began it.
    begun = len(acknowledged) + 1
    return Outcome(
        killed,
        len(acknowledged),
        sum(signal not in signals for signal in acknowledged.values()),
        max(0, len(signals) - begun),
        sum(map(is_torn, signals.values())),
    )


def is_torn(signal: Signal) -> bool:
    wanted = {"publish": 1}
    if signal.status == "closed":
        wanted["close"] = 1
    if signal.cancel_reason:
        wanted["cancel"] = 1
    told = Counter(LedgerEntry.objects.filter(signal=signal.pk).values_list("kind", flat=True))
    if signal.rules == 2 and told["close_request"] <= 1:
        # Where rules 2 have begun it is asked for, and no engine runs that closes it.
        del told["close_request"]
    parts = 1 + (signal.status == "closed")
    return (
        told != wanted
        or Evidence.objects.filter(signal=signal).count() != parts
        or Announcement.objects.filter(signal=signal).count() != parts
    )


def test_no_acknowledged_signal_is_lost_or_stored_twice(either: Installation, tell: Tell) -> None:
    assert check_lives(either, "REVIVED", LAST, tell).acts > 0


def check_lives(installation: Installation, symbol: str, last: int, tell: Tell) -> Outcome:
    outcome = lives(installation, symbol, "whole", last)
    tell(
        f"killed {outcome.killed} times at the 1st to {last}th write, {outcome.acts} acknowledged, "
        f"lost: {outcome.lost}, duplicated: {outcome.doubled}, broken: {outcome.torn}"
    )
    assert outcome.killed == last
    assert outcome[2:] == (0, 0, 0)
    with installation.orm():
        assert verify().fault == ""
    return outcome


@pytest.mark.parametrize(("mode", "which"), [("early", "lost"), ("no token", "doubled")])
def test_control_lost_and_duplicated_signals_are_noticed(
    mode: str, which: str, embedded: Installation, tell: Tell
) -> None:
    """Acknowledged before the commit, or sent again without its token."""
    outcome = lives(embedded, "CONTROL", mode, 2 * ACTS)

    tell(f"{mode}: {'duplicated' if which == 'doubled' else which} {getattr(outcome, which)}")
    assert getattr(outcome, which) > 0
