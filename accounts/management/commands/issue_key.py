from argparse import ArgumentParser
from typing import Any

from django.core.checks import Tags
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from accounts.keys.issuing import TooManyKeys, issue_key
from accounts.limits.tiers import change_tier
from accounts.models import Account, Tier, User
from core.program.operators import operator


class Command(BaseCommand):
    help = "Issue an API key and print it, alone, on standard output. It is not shown again."
    # Any other check would load all pages first.
    requires_system_checks = (Tags.security,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", help="The owner of the key; the account is created if there is none.")
        parser.add_argument("--tier", help="Put the account on this tier: free, pro or premium.")
        parser.add_argument("--name", default="issued by command", help="What the key is for.")

    def handle(self, *, username: str, tier: str | None, name: str, **options: Any) -> None:
        by = operator()
        try:
            with transaction.atomic():
                account = open_account(username)
                if tier and tier != account.tier.name:
                    change_tier(account, find_tier(tier), by=by)
                _, secret = issue_key(account, name[:60], by=by, most_a_day=None)
        except TooManyKeys as error:
            raise CommandError(str(error)) from None
        self.stdout.write(secret)


def open_account(username: str) -> Account:
    user = User.objects.filter(username=username).first()
    if user is None:
        user = User(username=username)
        user.set_unusable_password()
        try:
            user.clean_fields()
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        user.save()
    return Account.objects.for_user(user)


def find_tier(name: str) -> Tier:
    try:
        return Tier.objects.get(name=name)
    except Tier.DoesNotExist:
        known = ", ".join(Tier.objects.values_list("name", flat=True))
        raise CommandError(f"There is no tier {name!r}. It is one of {known}.") from None
