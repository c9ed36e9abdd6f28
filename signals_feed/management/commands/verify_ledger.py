from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from signals_feed.ledger.verify import NotedHead, verify


def noted(text: str) -> NotedHead:
    position, _, hash_ = text.partition(":")
    if not position.isascii() or not position.isdigit() or len(hash_) != 64:
        raise ArgumentTypeError("A head is written as POSITION:HASH, as this command prints it.")
    return NotedHead(int(position), hash_)


class Command(BaseCommand):
    help = (
        "Check every ledger entry against the one before it, and every signal and its evidence against its "
        "entries; name the first that was altered. Keep the head that it prints somewhere else: an intruder "
        "who can rewrite the whole database can rewrite the ledger, too, and only an earlier head reveals it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--head",
            type=noted,
            metavar="POSITION:HASH",
            help="A head noted earlier, which must be in the ledger.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        verdict = verify(options["head"])
        if verdict.fault:
            raise CommandError(f"{verdict.fault} {verdict.entries} entries before it hold.")
        self.stdout.write(f"{verdict.entries} entries hold. Head: {verdict.entries}:{verdict.head}")
        for warning in verdict.warnings:
            self.stdout.write(f"Warning: {warning}")
