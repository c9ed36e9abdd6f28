import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from demo import seeding as demo


class Command(BaseCommand):
    help = "Load the demo: people, keys, a market, signals and news. Again, it adds what is missing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--remove", action="store_true", help="Take away what the demo brought.")

    def handle(self, *, remove: bool, **options: Any) -> None:
        started_at = time.monotonic()
        act = demo.remove if remove else demo.seed
        act(self.stdout.write)
        self.stdout.write(f"Done in {time.monotonic() - started_at:.1f} s.")
