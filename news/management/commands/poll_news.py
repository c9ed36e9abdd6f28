"""`manage.py poll_news [SOURCE …]`: ask what is due, or the named sources now."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Q
from django.utils import timezone

from news.ingest.claims import claim, claim_due
from news.ingest.polling import Polled, poll
from news.models import Source

MOST = 1_000


class Command(BaseCommand):
    help = "Polls the news sources that are due, or those that are named, due or not."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("source", nargs="*", help="The name or the number of a source.")

    def handle(self, *args: Any, **options: Any) -> None:
        named = [self.find(name) for name in options["source"]]
        now = timezone.now()
        sources = [source for source in named if claim(source, now)] if named else claim_due(now, MOST)
        if len(sources) < len(named):
            self.stderr.write("What another process polls just now is left to it.")
        problems = sum(self.tell(source, asyncio.run(poll(source))) for source in sources)
        if not sources and not named:
            self.stdout.write("No source is due. Name one to poll it now.")
        if problems:
            raise CommandError(f"{problems} of {len(sources)} could not be polled.")

    @staticmethod
    def find(name: str) -> Source:
        number = Q(pk=int(name)) if name.isascii() and name.isdigit() else Q(pk=None)
        source = Source.objects.filter(Q(name=name) | number).order_by("pk").first()
        if source is None:
            names = ", ".join(Source.objects.values_list("name", flat=True)[:20])
            raise CommandError(f"There is no source {name!r}. There are: {names or 'none yet'}.")
        return source

    def tell(self, source: Source, polled: Polled) -> bool:
        self.stdout.write(f"{source}: {polled}")
        return bool(polled.problem)
