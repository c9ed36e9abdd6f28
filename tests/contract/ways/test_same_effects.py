"""What a request leaves behind is the same in both ways, and so is what happens when something changes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from django.db import transaction

from accounts.authentication import FreeOfCharge
from accounts.keys.cache import key_cache
from accounts.keys.issuing import revoke_key
from accounts.limits.tiers import change_tier, save_tier, save_user_access
from accounts.models import Account, ApiKey, Usage, User
from accounts.usage import usage_buffer
from core.contract.answers import Answer
from core.events.event_feed import feed
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from instruments.models import Instrument
from market.api.prices import MarketViewSet
from serving.draining import draining
from serving.metrics.http_requests import http_requests
from tests.contract.streams.daphne_server import DaphneServer
from tests.factories import make_tier
from tests.serving.websocket.wires import handshake

from .requests import BARS, HEADERS, QUOTE, TARGETS, Asked, get
from .visitors import TIMES, Visitor

SOME = [
    TARGETS[name] for name in ("quote", "bars", "quote", "symbols", "unknown symbol", "bad number", "news")
]
Visitors = list[Visitor]


def counted() -> dict[tuple[str, ...], float]:
    (family,) = http_requests.collect()
    return {
        tuple(sample.labels.values()): sample.value
        for sample in family.samples
        if sample.name.endswith("_count")
    }


def counted_of(visitor: Visitor) -> dict[tuple[str, ...], float]:
    before = counted()
    for asked in SOME:
        visitor.ask(asked)
    return {
        name: count - before.get(name, 0) for name, count in counted().items() if count != before.get(name)
    }


def test_metrics_count_the_same(visitors: Visitors) -> None:
    short, ordinary, _ = map(counted_of, visitors)
    assert sum(ordinary.values()) == len(SOME)
    assert short == ordinary


def test_usage_is_the_same(visitors: Visitors, server: DaphneServer) -> None:
    for visitor in visitors:
        for asked in SOME:
            visitor.ask(asked)
    server.run(usage_buffer.record())
    used = [
        list(Usage.objects.filter(account=visitor.account).order_by("span").values_list("span", "requests"))
        for visitor in visitors
    ]
    assert used == [[("day", len(SOME)), ("minute", len(SOME))]] * 3


def test_key_that_is_used_is_noted(visitors: Visitors) -> None:
    for visitor in visitors[:2]:
        visitor.ask(get())
        (key,) = ApiKey.objects.filter(account=visitor.account, revoked_at=None)
        key_cache.used.at.pop(key.pk)
        visitor.ask(get())
        assert key.pk in key_cache.used.at


@pytest.mark.usefixtures("one_moment")
@pytest.mark.parametrize("change", [{}, {"ACCESS_LOG": True}, {"SLOW_REQUEST_MS": 0.000_001}], ids=str)
def test_log_has_the_same_lines(
    visitors: Visitors, change: dict[str, Any], settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def lines_of(visitor: Visitor) -> list[tuple[object, ...]]:
        caplog.clear()
        for asked in SOME:
            visitor.ask(asked)
        said = [record.__dict__ for record in caplog.records if record.name == "accounts.access"]
        # How many more there were of a flood before may be told at any time.
        said = [each for each in said if "count" not in each]
        return [
            (each["levelname"], each["msg"], each["route"], each["status"], each.get("slow")) for each in said
        ]

    for visitor in visitors[:2]:
        visitor.ask(get())
    for name, value in change.items():
        setattr(settings, name, value)
    with caplog.at_level(logging.INFO, "accounts.access"):
        short, ordinary, _ = map(lines_of, visitors)
    assert len(ordinary) >= (len(SOME) if change.get("ACCESS_LOG") else 2)
    assert short == ordinary


# What changes between two heads that are the same


def revoke(account: Account) -> None:
    assert revoke_key(ApiKey.objects.get(account=account, revoked_at=None), by="test")


def lower_tier(account: Account) -> None:
    change_tier(account, make_tier("lower", requests_per_minute=5), by="test")


def tighten_tier(account: Account) -> None:
    account.tier.requests_per_minute = 7
    save_tier(account.tier, by="test")


def lock_out(account: Account) -> None:
    User.objects.filter(pk=account.user_id).update(is_active=False)
    save_user_access(account, by="test")


def deactivate(account: Account) -> None:
    set_active(active=False)


@transaction.atomic
def set_active(*, active: bool) -> None:
    Instrument.objects.filter(symbol="EURUSD").update(active=active)
    ControlEvent.objects.publish(EventKind.INSTRUMENTS_CHANGED, by="test")


class Change(NamedTuple):
    make: Callable[[Account], None]
    status: bytes
    undo: Callable[[], None] = lambda: None


CHANGES = {
    "key revoked": Change(revoke, b"401"),
    "user locked out": Change(lock_out, b"401"),
    "another tier": Change(lower_tier, b"200"),
    "tier with less": Change(tighten_tier, b"200"),
    "instrument deactivated": Change(deactivate, b"404", lambda: set_active(active=True)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_remembered_head_does_not_outlive_a_change(
    visitors: Visitors, server: DaphneServer, name: str
) -> None:
    change = CHANGES[name]
    before = [visitor.ask(get()) for visitor in visitors[:2]]
    for visitor in visitors[:2]:
        change.make(visitor.account)
    server.run(feed.make_sure())
    heard = len(visitors[0].door.heard)
    short, ordinary = ([visitor.ask(get()) for _ in range(8)] for visitor in visitors[:2])
    was_short = len(visitors[0].door.heard) == heard
    change.undo()
    server.run(feed.make_sure())
    assert short == ordinary
    assert short[0].split(b" ")[1] == change.status
    assert short[0] not in before
    assert was_short == all(answer.startswith(b"HTTP/1.1 200") for answer in short)


def test_process_that_is_about_to_stop_says_so_in_both_ways(
    visitors: Visitors, monkeypatch: pytest.MonkeyPatch
) -> None:
    for visitor in visitors[:2]:
        visitor.ask(get())
    monkeypatch.setattr(draining, "is_on", True)
    short, ordinary = (visitor.ask_again(get()) for visitor in visitors[:2])
    assert short == ordinary
    assert all(b"\r\nconnection: close\r\n" in answer for answer in short)


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("throttle_classes", (FreeOfCharge,), b"200"),
        ("quote", lambda self, request, symbol: Answer(b"", {}, 304), b"304"),
    ],
    ids=["free", "not modified"],
)
def test_short_path_answers_nothing_that_is_free_and_nothing_but_200(
    visitors: Visitors, monkeypatch: pytest.MonkeyPatch, name: str, value: object, status: bytes
) -> None:
    """Whatever becomes of a path that memory answers."""
    monkeypatch.setattr(MarketViewSet, name, value)
    asked = get(QUOTE + b"?" + name.encode())
    short, ordinary = (visitor.ask_again(asked) for visitor in visitors[:2])
    assert short == ordinary
    assert all(answer.startswith(b"HTTP/1.1 " + status) for answer in short)


# What comes together

TOGETHER = {
    "all remembered": [get(), get(BARS), get(), get()],
    "one of the database between them": [get(), TARGETS["news"], get(BARS), TARGETS["signals"], get()],
    "a refusal between them": [get(), TARGETS["unknown symbol"], get(), TARGETS["bad number"], get()],
    "a long head between them": [get(), HEADERS["long head"], get()],
    "new heads": [
        get(b"/api/symbols?n=1"),
        get(BARS + b"&closed_only=false"),
        get(b"/api/market/eurUSD/quote"),
    ],
    "malformed at the end": [get(), get(), HEADERS["folded header"]],
    "the last in the middle": [get(), HEADERS["Connection: close"]],
    "a socket at the end": [get(), Asked(handshake(path="/ws/market"))],
}


@pytest.mark.parametrize("name", TOGETHER)
def test_requests_that_come_together_are_answered_alike(visitors: Visitors, name: str) -> None:
    short, ordinary = (
        [visitor.ask_together(*TOGETHER[name]) for _ in range(TIMES)] for visitor in visitors[:2]
    )
    assert short == ordinary
