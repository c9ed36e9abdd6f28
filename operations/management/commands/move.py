import os
import sys
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, NoReturn

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from operations.copying.copies import DESPITE_LEDGER, move, refuse_if_in_use
from operations.copying.databases import addresses, faults_as_sentences, is_same, open_default, open_url
from operations.void_keys import WAY_OUT, void_keys

ON_TARGET = "--on-target"


class Command(BaseCommand):
    help = (
        "Copy everything from one database into another, empty one: from SQLite to PostgreSQL, back, or "
        "between two of a kind. Nothing may run on either. If it is killed, repeat it to continue "
        "where it stopped. At the end both are compared row by row and the ledger is verified."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("source", help="As DATABASE_URL is written: sqlite:////path or postgresql://…")
        parser.add_argument("target")
        parser.add_argument(
            "--anew",
            action="store_true",
            help="Delete what was left unfinished there, and begin again.",
        )
        parser.add_argument(
            DESPITE_LEDGER, action="store_true", help="Finish even if the ledger does not verify."
        )

        # The command starts itself again with this.
        parser.add_argument(ON_TARGET, action="store_true", help=SUPPRESS)

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["on_target"]:
            for which in ("source", "target"):
                refuse_unreadable(which, options[which])
            begin_on(options["target"])
        with faults_as_sentences():
            self.move(
                options["source"],
                options["target"],
                start_over=options["anew"],
                despite_ledger=options["despite_ledger"],
            )

    def move(self, source_url: str, target_url: str, **options: bool) -> None:
        if is_same(source_url, target_url):
            raise CommandError("Source and target are the same database.")
        with named("source"):
            source = open_url(source_url)
        with named("target"):
            target = open_default(create=True)
        self.say(f"The source is {source.place}; the target is {target.place}.")
        with closing(source), closing(target):
            refuse_if_in_use(source, "the source", self.stdout.write)
            refuse_if_in_use(target, "the target", self.stdout.write)
            move(source, target, source_url, **options, say=self.say)
        self.stdout.write(
            "Everything is in the target. Set DATABASE_URL to it, and keep the source for a while."
        )
        if void := void_keys():
            self.stdout.write(f"{void} {WAY_OUT}")

    def say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def refuse_unreadable(which: str, url: str) -> None:
    try:
        addresses.read(url)
    except ImproperlyConfigured as fault:
        says = str(fault).replace("DATABASE_URL", f"the {which}")
        raise CommandError(f"{says[0].upper()}{says[1:]}" if says.startswith("the ") else says) from None


@contextmanager
def named(which: str) -> Iterator[None]:
    """Both have addresses, and one of them is at fault."""
    try:
        yield
    except CommandError as fault:
        raise CommandError(f"The {which}: {fault}") from None


def begin_on(target: str) -> NoReturn:
    """This program once more, with the target as its database: settings depend on the kind."""
    words, changed = [sys.executable, *sys.argv, ON_TARGET], {"DATABASE_URL": target, "DATABASE_URL_FILE": ""}
    os.execve(sys.executable, words, os.environ | changed)  # noqa: S606
