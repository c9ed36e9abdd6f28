from argparse import ArgumentParser
from typing import Any

from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandError

from accounts.key_text import prefix_of
from accounts.keys.issuing import revoke_key
from accounts.models import ApiKey
from core.program.operators import operator


class Command(BaseCommand):
    help = "Revoke the API key with this prefix: its first 16 characters."
    # Any other check would load all pages first.
    requires_system_checks = (Tags.security,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("prefix", help="As in tw_live_Ab12Cd34; the whole key will do.")

    def handle(self, *, prefix: str, **options: Any) -> None:
        key = ApiKey.objects.select_related("account__user").filter(prefix=prefix_of(prefix)).first()
        if key is None:
            raise CommandError("No key has this prefix. The settings panel and the admin list the prefixes.")
        if not revoke_key(key, by=operator()):
            raise CommandError("This key was revoked before.")
        self.stdout.write(
            f"Revoked {key.prefix}…, a key of {key.account}. It stops working within two seconds."
        )
