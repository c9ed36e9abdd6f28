"""The control of the drill: what it says is never lost, doubled or interrupted it sees when that happens."""

from __future__ import annotations

import time

import pytest
from django.db import connection

from accounts.limits.tiers import save_tier
from accounts.models import Tier
from tests.nightly.reliability.drill.damage import FAILING_FOR_S, MOST_IN_A_MINUTE, harm_of
from tests.nightly.reliability.drill.loaded import SYMBOLS, LoadedInstallation, Size, furnish, under_load
from tests.nightly.reliability.drill.readers import StreamClient
from tests.patience import wait_until
from tests.reliability.services.frozen import frozen
from tests.reliability.services.processes import Installation

SIZE = Size(sockets=6, requests_a_second=20.0)
PAUSE_S = 6.0
pytestmark = pytest.mark.row("5–8", "lost, doubled and interrupted are seen")


def do_harm(loaded: LoadedInstallation) -> None:
    one, other = SYMBOLS[0].encode(), SYMBOLS[1]
    missing, doubled, *_ = [client.session for client in loaded.readers.clients if client.session]
    # As if a message had not come, as if one had come before, and as if one were told of a gap.
    missing.positions[one] -= 1
    doubled.positions[one] += 1
    tell_of_gap(loaded.readers.clients[2])
    # As if of one symbol more had been acknowledged than was written, and of another less.
    loaded.ticks.acknowledged[other] += 1
    loaded.ticks.acknowledged[SYMBOLS[2]] -= 1
    loaded.ticks.refused["too_late"] += 2
    loaded.signals.acknowledged.append("none")
    loaded.quotes.statuses[500] += 1
    loaded.quotes.failed_at += [0.0, FAILING_FOR_S + 1]


def tell_of_gap(client: StreamClient) -> None:
    assert client.session is not None
    client.session.gaps.append("another")


def tell_one_it_is_stale(loaded: LoadedInstallation) -> None:
    session = loaded.readers.clients[0].session
    assert session is not None
    session.notices["stale"] = session.notices.get("stale", 0) + 1


def break_ledger(installation: Installation) -> None:
    with installation.orm(), connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER signal_is_frozen")


def let_too_many_in(loaded: LoadedInstallation) -> None:
    """Until the account has had more than any fault may let in."""
    with loaded.installation.orm():
        tier = Tier.objects.get(name="counted")
        tier.requests_per_minute = 10_000
        save_tier(tier, by="test")
    wait_until(lambda: loaded.counted.most_in_a_minute() > MOST_IN_A_MINUTE)


def test_control_harm_is_counted(embedded: Installation) -> None:
    furnish(embedded)
    with (
        embedded.web_process() as server,
        under_load(embedded, SIZE, engines=0, ports=[server.port]) as loaded,
    ):

        def fault() -> None:
            loaded.readers.call(lambda: do_harm(loaded))
            break_ledger(embedded)
            with frozen([server.pid]):
                time.sleep(PAUSE_S)

        # Before the fault, so it does not count.
        loaded.readers.call(lambda: tell_of_gap(loaded.readers.clients[-1]))
        found = loaded.measure("harm", fault)
        told = loaded.measure("stale", lambda: loaded.readers.call(lambda: tell_one_it_is_stale(loaded)))
        limitless = loaded.measure("limits", lambda: let_too_many_in(loaded), limits_for_s=1.0)
    assert (found.missed, found.doubled, found.gaps) == (1, 1, 1)
    assert (found.ticks_lost, found.ticks_doubled, found.signals_lost) == (1, 1, 1)
    assert found.ticks_refused == {"too_late": 2}
    assert "signal_is_frozen" in found.ledger_fault
    assert found.silent_s >= PAUSE_S
    assert found.unanswered_s >= PAUSE_S
    assert found.statuses[500] == 1
    assert len(harm_of(found)) == 9
    assert (told.stale, told.gaps) == (1, 0)
    # What was counted of one fault does not count for the next; what is broken stays broken.
    assert harm_of(told) == ["acknowledged signals lost: 1", f"ledger: {found.ledger_fault}"]
    assert limitless.admission is not None
    beyond = limitless.admission.most_in_a_minute - MOST_IN_A_MINUTE
    assert beyond > 0
    assert f"requests admitted beyond the promise: {beyond}" in harm_of(limitless)
