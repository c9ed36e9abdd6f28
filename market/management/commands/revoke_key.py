from argparse import ArgumentParser
from typing import Any

from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandError

from accounts.key_text import prefix_of
from accounts.keys import revoke_key
from accounts.models import ApiKey
from core.program import operator
from market.models import IngestKey
from market.push.keys import LEAD, revoke_ingest_key

UNKNOWN = "No key has this prefix. The settings panel and the admin list the prefixes."
REVOKED = "This key was revoked before."


class Command(BaseCommand):
    help = "Revoke the API key or ingest key with this prefix: what it begins with, and 8 characters."
    # Any other check would load all pages first.
    requires_system_checks = (Tags.security,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("prefix", help="As in tw_live_Ab12Cd34; the whole key will do.")

    def handle(self, *, prefix: str, **options: Any) -> None:
        revoke = revoke_for_ingest if prefix.startswith(LEAD) else revoke_for_api
        self.stdout.write(f"Revoked {revoke(prefix)}. It stops working within two seconds.")


def revoke_for_api(prefix: str) -> str:
    key = ApiKey.objects.select_related("account__user").filter(prefix=prefix_of(prefix)).first()
    if key is None:
        raise CommandError(UNKNOWN)
    if not revoke_key(key, by=operator()):
        raise CommandError(REVOKED)
    return f"{key.prefix}…, a key of {key.account}"


def revoke_for_ingest(prefix: str) -> str:
    key = IngestKey.objects.filter(prefix=prefix_of(prefix, LEAD)).first()
    if key is None:
        raise CommandError(UNKNOWN)
    if not revoke_ingest_key(key, by=operator()):
        raise CommandError(REVOKED)
    return f"{key.prefix}…, an ingest key of {key.name}"
