import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import IO, Any

from django.core.management.base import BaseCommand, CommandError

from core.plain_json import encode
from news.labels import sentiment_label
from news.models import NewsCategory
from news.sentiment.linear import BadModel, linear_model

# A longer line is no title; the rest of it is skipped without being kept in memory.
LONGEST_LINE = 65_536


class Command(BaseCommand):
    help = "Score titles, one a line, with the built-in model: one JSON object a line. Needs no database."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="UTF-8, one title a line; - is standard input.")
        parser.add_argument(
            "--category", choices=NewsCategory.values, default="", help="Default: derived from each title."
        )

    def handle(self, *, file: str, category: str, **options: Any) -> None:
        try:
            model = linear_model()
            with sys.stdin.buffer if file == "-" else open(file, "rb") as lines:
                for title in titles(lines):
                    score = model.score(title, category)
                    found = {"title": title, "sentiment": sentiment_label(score), "sentiment_score": score}
                    self.stdout.write(encode(found | {"model": model.identifier}).decode())
        except (OSError, BadModel) as error:
            if isinstance(error, BrokenPipeError):
                raise
            reason = getattr(error, "strerror", None) or error
            raise CommandError(f"{file} cannot be read: {reason}.") from None


def titles(lines: IO[bytes]) -> Iterator[str]:
    """Lines that are not blank. Bytes that are not UTF-8 become replacement characters."""
    while line := lines.readline(LONGEST_LINE):
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = lines.readline(LONGEST_LINE)
        title = line.decode("utf-8-sig", "replace").strip()
        if title:
            yield title
