"""Months of one-minute bars, as Binance publishes them: a file for each, with its checksum beside it."""

import asyncio
import hashlib
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from django.conf import settings
from django.core.management.base import CommandError

from core.clock import machine_ms
from core.http import HttpFailed, bounded, open_client, request
from core.times import moment
from market.engine.feeds.supervisor import venue_symbols
from market.engine.files.format import KLINES
from market.engine.importing.importer import Importer, ImportTerms
from market.engine.venues.binance import venue_symbol
from market.management.commands.import_ticks import ImportCommand
from market.management.terminal import find_instrument

PUBLIC = "https://data.binance.vision"
TREE = "data/spot/monthly/klines/{name}/1m/{file}"
"""Where a month's file lies at an address."""

# A busy month has three megabytes.
MOST_BYTES = 64 << 20
TIMEOUT_S = 600


def month(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC)
    except ValueError:
        raise ArgumentTypeError(f"{text} is no month such as 2024-01") from None


class Missing(Exception):
    """There is no such file."""


class MonthFile(NamedTuple):
    of: datetime
    name: str

    @property
    def file(self) -> str:
        return f"{self.name}-1m-{self.of:%Y-%m}.zip"

    def read(self, source: str) -> bytes:
        """The whole file, if it is what its checksum says."""
        packed, written = self._read(source, self.file), self._read(source, f"{self.file}.CHECKSUM")
        if written.split()[:1] != [hashlib.sha256(packed).hexdigest().encode()]:
            raise CommandError(
                f"{self.file} is not what its checksum says, so nothing was imported. Download it again."
            )
        return packed

    def _read(self, source: str, file: str) -> bytes:
        if not source.startswith(("https://", "http://")):
            try:
                return (Path(source) / file).read_bytes()
            except FileNotFoundError:
                raise Missing(f"{file} is not in {source}") from None
        address = f"{source.rstrip('/')}/{TREE.format(name=self.name, file=file)}"
        try:
            status, body = asyncio.run(download(address))
        except HttpFailed as failed:
            raise CommandError(f"{address}: {failed}. Nothing was imported; try again.") from None
        if status == HTTPStatus.NOT_FOUND:
            raise Missing(f"{address} does not exist")
        if status != HTTPStatus.OK:
            raise CommandError(f"{address}: the answer was {status}. Nothing was imported.")
        return body


async def download(address: str) -> tuple[int, bytes]:
    async with open_client() as client, bounded(TIMEOUT_S):
        response, body = await request(client, "GET", address, most=MOST_BYTES, timeout=TIMEOUT_S)
    return response.status_code, body


class Command(ImportCommand):
    help = (
        "Import one-minute bars from the files that Binance publishes for each month, if their checksums "
        "hold. Stopped with Ctrl-C, the same command goes on; importing twice changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("symbol")
        parser.add_argument(
            "--from", dest="first", type=month, required=True, metavar="YYYY-MM", help="The first month."
        )
        parser.add_argument(
            "--until",
            dest="last",
            type=month,
            metavar="YYYY-MM",
            help="The last month. Default: the last that is there.",
        )
        parser.add_argument(
            "--source",
            default=PUBLIC,
            help="An address that serves the files, or a folder with them and their checksums. Default: "
            "%(default)s.",
        )

    def handle(self, *, symbol: str, first: datetime, last: datetime | None, source: str, **_: Any) -> None:
        facts, now_ms = find_instrument(symbol), machine_ms()
        name = venue_symbols("binance", [facts], venue_symbol)[facts.symbol]
        wanted = list(months(first, last or moment(now_ms).replace(day=1) - timedelta(days=1)))
        if not wanted:
            raise CommandError(f"No month from {first:%Y-%m} on has ended, so there is nothing to import.")
        with TemporaryDirectory() as folder:
            files = list[str]()
            try:
                for file in (MonthFile(each, name) for each in wanted):
                    path = Path(folder) / file.file
                    path.write_bytes(file.read(source))
                    files.append(str(path))
                    self.stdout.write(f"{file.file} is what its checksum says.")
            except Missing as missing:
                if last or not files:
                    raise CommandError(f"{missing}, so nothing was imported.") from None
                self.stdout.write(f"{missing}: the months before it are imported.")
            self._warn(first, now_ms)
            importer = Importer(ImportTerms(facts, settings.CANDLE_PRICE, now_ms))
            self.import_files(importer, facts, files, KLINES.name)

    def _warn(self, first: datetime, now_ms: int) -> None:
        days = settings.CANDLE_DAYS["1m"]
        if days and first < moment(now_ms) - timedelta(days=days):
            self.stdout.write(
                f"A running engine keeps one-minute candles for {days} days, and coarser ones for longer. "
                "Set CANDLE_DAYS_1M, CANDLE_DAYS_5M and CANDLE_DAYS_15M to keep more."
            )


def months(first: datetime, last: datetime) -> Iterator[datetime]:
    while first <= last:
        yield first
        first = (first + timedelta(days=31)).replace(day=1)
