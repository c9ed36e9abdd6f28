"""`manage.py poll_news [SOURCE …]`: polls what is due, or the named sources at once."""

import asyncio
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Q
from django.utils import timezone

from core.threads import in_thread
from news.ingest.polling import Polled, claim, poll
from news.models import Source
from news.scoring import current_model
from news.sentiment import SentimentFailed, SentimentModel

MOST = 1_000


class Command(BaseCommand):
    help = "Poll the news sources that are due, or those that are named, due or not."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("source", nargs="*", help="The name or the number of a source.")

    def handle(self, *args: Any, **options: Any) -> None:
        named = [self.find(name) for name in options["source"]]
        sources = named or list(Source.objects.due(timezone.now())[:MOST])
        polled = asyncio.run(self.poll_in_turn(sources))
        if len(polled) < len(sources):
            self.stderr.write("Sources that another process is polling are left to it.")
        if not sources:
            self.stdout.write("No source is due. Name one to poll it now.")
        if problems := sum(bool(each.problem) for each in polled):
            raise CommandError(f"{problems} of {len(polled)} could not be polled.")

    async def poll_in_turn(self, sources: Sequence[Source]) -> list[Polled]:
        polled = []
        if sources:
            await self.check_model(current_model())
        for source in sources:
            # One claim at a time: it lasts two minutes, and the last of many would expire before its turn.
            if await in_thread(claim, source, timezone.now()):
                polled.append(await poll(source))
                self.stdout.write(f"{source}: {polled[-1]}")
        return polled

    async def check_model(self, model: SentimentModel) -> None:
        """Models score only after a check, which the service makes in the background."""
        try:
            await model.check()
        except SentimentFailed as failure:
            self.stderr.write(f"The built-in model scores in place of {model.identifier}: {failure}")

    @staticmethod
    def find(name: str) -> Source:
        number = Q(pk=int(name)) if name.isascii() and name.isdigit() else Q(pk=None)
        source = Source.objects.filter(Q(name=name) | number).order_by("pk").first()
        if source is None:
            names = ", ".join(Source.objects.values_list("name", flat=True)[:20])
            raise CommandError(f"There is no source {name!r}. There are: {names or 'none yet'}.")
        return source
