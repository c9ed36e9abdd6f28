"""Somebody whose name and address are looked for in every table."""

from __future__ import annotations

import json

from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.utils import timezone

from accounts.limits.tiers import ask_for_tier, decline_request
from accounts.models import Account, Tier, Usage, User
from signals_feed.publishers.requests import ask_to_publish
from signals_feed.publishers.requests import decline_request as decline_publishing
from tests.accounts.login.factors import PASSWORD, enrol, log_in
from tests.factories import make_account, make_user

NAME, MAIL = "canary-of-the-mine", "canary@coal.example"


def make_canary() -> Account:
    """Somebody with rows in every table that could name them."""
    user = make_user(NAME, PASSWORD, email=MAIL, first_name=NAME)
    account = make_account(user, "pro")
    client = log_in(NAME)
    enrol(client)
    client.post("/accounts/email/", {"action_add": "", "email": f"other.{MAIL}"})
    client.post("/settings/keys", {"name": "laptop", "newest": "none"})
    client.post("/page-token")
    wanted = ask_for_tier(account, Tier.objects.get(name="premium"), "please", by=NAME)
    decline_request(wanted, f"No, {NAME}.", by="boss")
    decline_publishing(ask_to_publish(account, f"As {NAME}.", by=user), f"No, {NAME}.", by=make_user("staff"))
    Usage.objects.create(account=account, span="day", starts_at=timezone.now())
    about = {"user": make_user("boss"), "action_flag": 2, "object_id": str(user.pk), "object_repr": NAME}
    LogEntry.objects.create(
        content_type=ContentType.objects.get_for_model(User),
        change_message=json.dumps([{"changed": {"object": f"{NAME} <{MAIL}>"}}]),
        **about,
    )
    return account


def naming(*texts: str) -> dict[str, list[str]]:
    """The rows that have one of the texts, by table."""
    found: dict[str, list[str]] = {}
    for model in apps.get_models(include_auto_created=True):
        for row in model._default_manager.values():
            if any(text in str(row) for text in texts):
                found.setdefault(model._meta.db_table, []).append(str(row))
    return found
