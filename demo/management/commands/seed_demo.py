import os
import time
from argparse import ArgumentParser
from typing import Any

from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandError

from core.database import UNANSWERED
from demo import seeding as demo
from demo.market import line_on
from demo.past import LATER


class Command(BaseCommand):
    help = "Load the demo: people, keys, a market, signals and news. Again, it adds what is missing."

    # Others would import every page, and that takes longer than much of what this does.
    requires_system_checks = (Tags.security,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--remove", action="store_true", help="Remove everything that belongs to the demo."
        )
        parser.add_argument(
            "--beside",
            type=int,
            metavar="PID",
            help="Generate what a service has left to be generated beside it, while it is running.",
        )

    def handle(self, *, remove: bool, beside: int | None, **options: Any) -> None:
        if beside is not None:
            self.make_beside(beside)
            return
        started_at = time.monotonic()
        act = demo.remove if remove else demo.seed
        act(self.stdout.write)
        self.stdout.write(f"Done in {time.monotonic() - started_at:.1f} s.")

    def make_beside(self, service: int) -> None:
        try:
            demo.finish(line_on(self.stdout), lambda: os.getppid() == service)
        except (*UNANSWERED, OSError) as error:
            reason = str(error).strip().splitlines()[0].rstrip(".")
            raise CommandError(f"The demo's past is not complete: {reason}. {LATER}") from None
