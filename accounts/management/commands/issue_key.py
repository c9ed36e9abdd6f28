import csv
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.core.checks import Tags
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from accounts.key_text import generate_key
from accounts.keys.issuing import TooManyKeys, issue_keys
from accounts.limits.tiers import change_tier
from accounts.models import Account, Tier, User
from core.program import operator

# All keys are one transaction, for which revocations wait.
BATCH = 500
STDIN = ["-"]


class Command(BaseCommand):
    help = (
        "Issue an API key and print it, alone, on standard output. It is not shown again. For several "
        "owners, print a line of owner,key for each."
    )
    # Any other check would load all pages first.
    requires_system_checks = (Tags.security,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "usernames",
            nargs="+",
            metavar="username",
            help="The owner of the key; the account is created if there is none. - reads owners from "
            "standard input, one a line.",
        )
        parser.add_argument("--tier", help="Put the account on this tier: free, pro or premium.")
        parser.add_argument("--name", default="issued by command", help="What the key is for.")

    def handle(self, *, usernames: list[str], tier: str | None, name: str, **options: Any) -> None:
        if "-" in usernames and usernames != STDIN:
            raise CommandError("- stands alone: all owners come on standard input then.")
        owners = [line.strip() for line in sys.stdin if line.strip()] if usernames == STDIN else usernames
        if not owners:
            raise CommandError("No owner came on standard input: write one a line.")
        is_alone = len(usernames) == 1 and usernames != STDIN
        wanted, lines = find_tier(tier) if tier else None, csv.writer(self.stdout, lineterminator="\n")
        accounts = open_accounts(owners)
        for start in range(0, len(owners), BATCH):
            batch = owners[start : start + BATCH]
            try:
                secrets = issue([accounts[owner] for owner in batch], wanted, name[:60], by=operator())
            except TooManyKeys as error:
                raise CommandError(f"{error.account}: {error}") from None
            lines.writerows(zip(secrets) if is_alone else zip(batch, secrets, strict=True))


@transaction.atomic
def issue(accounts: Sequence[Account], tier: Tier | None, name: str, *, by: str) -> list[str]:
    """The secret of a new key of each account."""
    secrets = [generate_key() for _ in accounts]
    issue_keys(list(zip(accounts, secrets, strict=True)), name, by=by, most_a_day=None)
    if tier is not None:
        for account in accounts:
            if account.tier != tier:
                change_tier(account, tier, by=by)
                account.tier = tier
    return secrets


@transaction.atomic
def open_accounts(usernames: Sequence[str]) -> dict[str, Account]:
    """By their owners. All are opened or, if one has no valid name, none."""
    users = User.objects.in_bulk(set(usernames), field_name="username")
    new = [new_user(username) for username in dict.fromkeys(usernames) if username not in users]
    users |= {user.username: user for user in User.objects.bulk_create(new)}
    accounts = {
        account.user.username: account
        for account in Account.objects.select_related("tier", "user").filter(user__in=users.values())
    }
    free = Tier.objects.get(name="free")
    opened = [Account(user=user, tier=free) for name, user in users.items() if name not in accounts]
    return accounts | {account.user.username: account for account in Account.objects.bulk_create(opened)}


def new_user(username: str) -> User:
    user = User(username=username)
    user.set_unusable_password()
    try:
        user.clean_fields()
    except ValidationError as error:
        raise CommandError(f"{username}: {' '.join(error.messages)}") from None
    return user


def find_tier(name: str) -> Tier:
    try:
        return Tier.objects.get(name=name)
    except Tier.DoesNotExist:
        known = ", ".join(Tier.objects.values_list("name", flat=True))
        raise CommandError(f"There is no tier {name!r}. It is one of {known}.") from None
