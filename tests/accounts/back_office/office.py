"""A staff member at a browser: pages by the model they belong to, actions by their name."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.models import LogEntry
from django.db.models import Model
from django.urls import reverse

from accounts.models import User
from core.events.outbox import ControlEvent
from tests.staff import staff_client

Page = type[Model] | Model


class Office:
    """Every request goes to the admin, as one user."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.client = staff_client(user)

    def get(self, address: str) -> Any:
        return self.client.get(address)

    def post(self, address: str, **fields: Any) -> Any:
        return self.client.post(address, fields)

    def act(self, action: str, *chosen: Model, **fields: Any) -> Any:
        """Choose rows of a list and run one of its actions."""
        pks = [str(row.pk) for row in chosen]
        return self.post(list_of(chosen[0]), action=action, _selected_action=pks, **fields)

    def answer(self, action: str, *chosen: Model, **fields: Any) -> Any:
        """Fill in the form with which an action asks back."""
        return self.act(action, *chosen, answered="1", **fields)


def list_of(page: Page) -> str:
    return address(page, "changelist")


def add_to(page: Page) -> str:
    return address(page, "add")


def change(row: Model) -> str:
    return address(row, "change", row.pk)


def address(page: Page, name: str, *args: Any) -> str:
    return reverse(f"admin:{page._meta.app_label}_{page._meta.model_name}_{name}", args=args)


def text_of(response: Any) -> str:
    return str(response.content, "utf-8")


def said(response: Any) -> list[str]:
    """The messages of an answer that does not redirect, or of the one before it."""
    return [str(message) for message in response.wsgi_request._messages]


def logged(row: Model) -> list[tuple[str, str]]:
    """Who did what with a row, oldest first."""
    entries = LogEntry.objects.filter(object_id=str(row.pk), content_type__model=row._meta.model_name)
    return [(entry.user.get_username(), entry.get_change_message()) for entry in entries.order_by("pk")]


def published() -> list[tuple[str, str]]:
    """Kinds of control events and by whom, oldest first."""
    return list(ControlEvent.objects.order_by("position").values_list("kind", "by"))
