"""Numbers that users are promised, written out: a change of one in the code breaks a promise. Elsewhere tests
take them from the code."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.conf import settings

from accounts.keys import issuing
from accounts.limits import throttling
from market import own_prices
from market.engine.bus import journal
from market.streams.consumer import StreamConsumer
from market.streams.hub import subscribers
from market.streams.protocol import reading
from serving.http import bounds, deadlines
from serving.websocket import protocol
from signals_feed import rules
from signals_feed.models import LIFETIME

PROMISED: dict[str, tuple[object, object]] = {
    "bytes of a head": (bounds.MOST_HEAD_BYTES, 32_768),
    "headers of a request": (bounds.MOST_HEADERS, 100),
    "seconds for a head": (deadlines.HttpTimeouts.head_s, 10),
    "seconds between requests": (deadlines.HttpTimeouts.idle_s, 75),
    "seconds before a body must move, and bytes a second": (
        (deadlines.HttpTimeouts.grace_s, deadlines.BYTES_A_SECOND),
        (10, 4_096),
    ),
    "bytes of a body": (bounds.MOST_BODY_BYTES, 65_536),
    "bytes of pushed ticks": (bounds.MOST_TICK_BYTES, 1_048_576),
    "bytes of an import": (bounds.MOST_IMPORT_BYTES, 10_485_760),
    "connections per address": (settings.CONNECTIONS_PER_ADDRESS, 200),
    "seconds that keys are trusted without PostgreSQL": (settings.KEYS_TRUSTED_FOR_S, 900),
    "milliseconds before a minute closes": (settings.CLOSE_GRACE_MS, 2_000),
    "how far an entry may be from the price": (rules.FARTHEST, Decimal("0.01")),
    "days after which a signal expires, and a price stays one's own": (
        (LIFETIME.days, own_prices.ENDED_FOR.days),
        (7, 30),
    ),
    "failed keys a minute": (throttling.FAILURES_PER_MINUTE, 60),
    "failed passwords": (
        {name: settings.ACCOUNT_RATE_LIMITS[name] for name in ("login_failed", "login_failed_of_account")},
        {"login_failed": "5/900s/key", "login_failed_of_account": "100/h/key"},
    ),
    "keys of an account": (issuing.MAX_USABLE_KEYS, 25),
    "hours of overlap": (issuing.MAX_OVERLAP_HOURS, 72),
    "seconds before a subscribe": (StreamConsumer.FIRST_WITHIN_S, 10),
    "bytes of a message": (reading.MAX_BYTES, 16_384),
    "messages a second, and at once": ((reading.A_SECOND, reading.BURST), (10, 20)),
    "bytes, frames and seconds that a reader may be behind": (
        (subscribers.MOST_BYTES, subscribers.MOST_FRAMES, subscribers.STUCK_AFTER_S),
        (1_048_576, 2_000, 5),
    ),
    "milliseconds and messages of a symbol that a resume reaches back": (
        (journal.KEEP_MS, journal.MAX_FRAMES),
        (120_000, 1_000),
    ),
    "seconds between pings, and for the answer": (
        (protocol.WEBSOCKET_OPTIONS["ws_ping_interval"], protocol.WEBSOCKET_OPTIONS["ws_ping_timeout"]),
        (10, 15),
    ),
}


@pytest.mark.parametrize("promise", PROMISED)
def test_what_users_are_promised_is_what_the_code_says(promise: str) -> None:
    found, promised = PROMISED[promise]
    assert found == promised, f"{promise}: README, docs and clients promise {promised}"
