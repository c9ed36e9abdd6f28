from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from transparency.checkpoints import Checkpoint
from transparency.keyring import BOTH_SIGN, keyring
from transparency.models import LogKey
from transparency.remembered import Forked
from transparency.signing import known_checkpoint


class Command(BaseCommand):
    help = (
        "List the public keys of the ledger's log, the current one first. --rotate makes a new key, and"
        " --new-log begins a new log, for a ledger whose last entries are lost."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_mutually_exclusive_group()
        acts.add_argument("--rotate", action="store_true", help="Make a new key for the same log.")
        acts.add_argument(
            "--new-log",
            action="store_true",
            help="Begin a log whose name says where the last one ended. Witnesses have to accept it.",
        )
        parser.add_argument(
            "--days",
            type=int,
            default=BOTH_SIGN.days,
            help=f"With --rotate: how long the old key signs beside the new one. Default: {BOTH_SIGN.days}.",
        )

    def handle(self, *, rotate: bool, new_log: bool, days: int, **options: Any) -> None:
        now = timezone.now()
        try:
            if rotate:
                keyring.rotate(now, timedelta(days=max(0, days)))
            elif new_log:
                keyring.begin_log(last_signed(), now)
        except Forked as forked:
            raise CommandError(forked.message) from None
        for key in LogKey.objects.order_by("-pk"):
            until = key.signs_until
            state = "current" if until is None else f"signs until {until:%Y-%m-%d}" if until > now else "old"
            self.stdout.write(f"{key.verifier}  {state}")


def last_signed() -> Checkpoint:
    """Even if the database has lost it, or has rows that were not written by the service."""
    found = [each for each in (keyring.last_signed(), known_checkpoint()) if each]
    if not found:
        raise CommandError("Nothing was signed yet, so no log has ended.")
    return max(found, key=lambda each: each.size)
