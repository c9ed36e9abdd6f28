from argparse import ArgumentParser
from typing import Any

from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandError

from accounts.deletion import DeletionRefused, delete_account
from accounts.models import PUBLISHER, User

LEFT = (
    " What has to stay is named {pseudonym}. The ledger of signals calls publishers by a number, such as"
    " {ledger_name}; only its entries of version 0.1.0 hold a username."
)


class Command(BaseCommand):
    help = (
        "Delete an account permanently: keys and sessions end at once, and nothing names its owner any "
        "more but "
        "scores that they gave to news, and the ledger, if they published signals under version 0.1.0."
    )
    requires_system_checks = (Tags.security,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--yes", action="store_true", help="Confirm: without it nothing is deleted.")

    def handle(self, *, username: str, yes: bool, **options: Any) -> None:
        user = User.objects.filter(username=username).first()
        if user is None:
            raise CommandError(f"There is no user {username}.")
        if not yes:
            raise CommandError(f"This cannot be undone. To delete {username}, repeat it with --yes.")
        try:
            pseudonym = delete_account(user)
        except DeletionRefused as refusal:
            raise CommandError(str(refusal)) from None
        left = LEFT.format(pseudonym=pseudonym, ledger_name=f"{PUBLISHER}{user.pk}") if pseudonym else ""
        self.stdout.write(f"The account is deleted; its keys and sockets end within two seconds.{left}")
