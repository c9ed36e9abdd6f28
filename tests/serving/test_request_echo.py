"""Only whoever has the installation's secret is told what the service saw, and only by itself."""

from __future__ import annotations

import resource
import time
from typing import Any

import pytest
import time_machine
from django.core import signing
from pytest_django.fixtures import Settings

from serving.request_echo import (
    VALID_S,
    NotOfThisInstallation,
    SeenRequest,
    answer_echo,
    echo_socket,
    make_ticket,
    read_answer,
)

OTHERS = "of another installation, and as long as a secret should be"


async def look(*headers: tuple[str, str], method: str = "GET") -> tuple[int, str]:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    raw = [(name.encode(), value.encode()) for name, value in headers]
    scope = {"method": method, "scheme": "https", "client": ("192.0.2.1", 5), "headers": raw}
    await answer_echo(scope, send)
    return sent[0]["status"], sent[1]["body"].decode()


async def test_with_a_ticket_it_says_what_it_saw() -> None:
    ticket = make_ticket()
    host, forwarded = ("host", "api.example.com"), ("x-forwarded-for", "192.0.2.1")
    status, body = await look(("x-tickwire-ticket", ticket), host, forwarded, ("x-forwarded-for", "10.0.0.1"))

    assert status == 200
    seen = read_answer(ticket, body)
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert seen == SeenRequest(
        seen.version, "192.0.2.1", 5, "https", "api.example.com", "192.0.2.1, 10.0.0.1", "", soft_limit
    )


async def test_without_a_ticket_of_this_installation_it_says_nothing(settings: Settings) -> None:
    own, settings.SECRET_KEY = settings.SECRET_KEY, OTHERS
    foreign = make_ticket()
    settings.SECRET_KEY = own
    with time_machine.travel(time.time() - VALID_S - 5):
        ended = make_ticket()
    for_another_purpose = signing.TimestampSigner(salt="other").sign("x")
    for ticket in ("", "made up", for_another_purpose, foreign, ended):
        assert await look(("x-tickwire-ticket", ticket)) == (403, "Not of this installation")


async def test_an_answer_counts_for_its_own_ticket_and_installation(settings: Settings) -> None:
    ticket = make_ticket()
    _, body = await look(("x-tickwire-ticket", ticket))
    with pytest.raises(NotOfThisInstallation):
        read_answer(make_ticket(), body)
    settings.SECRET_KEY = OTHERS
    with pytest.raises(NotOfThisInstallation):
        read_answer(ticket, body)


async def test_a_socket_without_a_ticket_is_not_opened() -> None:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    await echo_socket({"scheme": "ws", "client": None, "headers": []}, receive, send)
    assert sent == [{"type": "websocket.close"}]
