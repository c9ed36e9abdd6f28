from argparse import ArgumentParser
from typing import Any

from django.core.checks import Tags
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from accounts.rights import PowerRefused
from core.program import command, operator
from market.models import IngestKey
from market.own_prices import account_of
from market.push.keys import check_symbols, issue_ingest_key


class Command(BaseCommand):
    help = "Issue an ingest key and print it, alone, on standard output. It is not shown again."
    # Any other check would load all pages first.
    requires_system_checks = (Tags.security,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="Names the source: its ticks come from push:NAME.")
        parser.add_argument("symbols", nargs="*", help="What it may send. None: all.")
        parser.add_argument(
            "--owner",
            metavar="USERNAME",
            help="Its owner, who then cannot publish signals on these symbols. Default: none.",
        )

    def handle(self, *, name: str, symbols: list[str], owner: str | None, **options: Any) -> None:
        try:
            IngestKey._meta.get_field("name").clean(name, None)
            allowed = check_symbols(" ".join(symbols))
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        others = IngestKey.objects.filter(name=name, revoked_at=None).values_list("prefix", flat=True)
        if prefixes := ", ".join(f"{prefix}…" for prefix in others):
            self.stderr.write(
                f"{name} may push with this key and with {prefixes}: revoke those that are not used, by"
                f" `{command('revoke_key PREFIX')}`."
            )
        account = account_of(owner) if owner else None
        if owner and account is None:
            raise CommandError(f"There is no user {owner}.")
        try:
            _, secret = issue_ingest_key(name, allowed, by=operator(), account=account)
        except PowerRefused as error:
            raise CommandError(str(error)) from None
        self.stdout.write(secret)
