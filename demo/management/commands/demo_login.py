from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from demo.login import fresh_link
from demo.seeding import refuse_outside_demo
from serving.server import shown_address


class Command(BaseCommand):
    help = "Print a link with which the demo's staff can log in, once, within a quarter of an hour."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=settings.HOST, help="Default: HOST, or 127.0.0.1.")
        parser.add_argument("--port", type=int, default=settings.PORT, help="Default: PORT, or 8000.")

    def handle(self, *, host: str, port: int, **options: Any) -> None:
        refuse_outside_demo()
        link = fresh_link()
        if link is None:
            raise CommandError("There is no demo staff here. Start the demo first: make run")
        self.stdout.write(f"{shown_address(host, port)}{link}")
