"""Browsers that ask for page tokens."""

from __future__ import annotations

from typing import Any

from django.test import Client

from accounts.models import User


def browser(address: str = "127.0.0.1", **options: Any) -> Client:
    host = {"host": "127.0.0.1:8000"}
    return Client(headers=host, SERVER_NAME="127.0.0.1", REMOTE_ADDR=address, **options)


def logged_in(user: User) -> Client:
    client = browser()
    client.force_login(user)
    return client


def ask(client: Client) -> Any:
    return client.post("/page-token")


def token_of(client: Client) -> str:
    answer = ask(client)
    assert answer.status_code == 200, answer.content
    return str(answer.json()["token"])
