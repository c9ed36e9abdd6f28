from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from news.sentiment.linear import FILE
from news.sentiment.training.examples import BadData, read_own, read_sentfin


class Command(BaseCommand):
    help = "Train the built-in sentiment model anew. The same headlines give the same file."

    # Headlines need no database, and training none of the rest of the service.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--data", type=Path, required=True, help="SEntFiN.csv, which is not ours to ship."
        )
        parser.add_argument(
            "--out", type=Path, default=FILE, help="Default: the file that the service reads."
        )

    def handle(self, *, data: Path, out: Path, **options: Any) -> None:
        try:
            from news.sentiment.training.trainer import train
        except ImportError:
            raise CommandError("Training needs scikit-learn: install requirements-dev.lock.") from None
        try:
            others = read_sentfin(data)
        except BadData as error:
            raise CommandError(str(error)) from None
        own = read_own()
        self.stdout.write(f"Training on {len(others)} headlines of SEntFiN and {len(own)} of our own")
        content = train(others, own).as_bytes()
        out.write_bytes(content)
        self.stdout.write(f"{out}: {len(content)} bytes")
