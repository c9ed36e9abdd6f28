import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from core.clock import machine_ms
from core.process import freeze_startup_objects
from instruments.facts import InstrumentFacts
from market.engine.files.format import BadFile
from market.engine.files.tick_file import FORMATS, TickFile
from market.engine.importing.importer import Importer, ImportTerms
from market.engine.importing.tally import ImportTally, StoppedAtFault, complaints, fault_line, summary
from market.management.terminal import ProgressBar, find_instrument, interruptible
from market.store.series import present_kind

SIMULATED = (
    "{symbol} is priced by a simulated source now, so these candles are stored and not shown. Give it a real "
    "source, such as push, to see them."
)
BY_DEFAULT = "If the service runs with DEMO=0, import them again with DEMO=0 set for this command too."


class ImportCommand(BaseCommand):
    def import_files(
        self, importer: Importer, facts: InstrumentFacts, files: list[str], format_name: str | None
    ) -> None:
        # Looking through the program itself every few thousand lines would take half the time.
        freeze_startup_objects()
        try:
            total = total_size(files, format_name)
            with ProgressBar(sys.stderr, total) as bar, interruptible() as stopped:

                def go_on(done: int) -> bool:
                    bar.show(done, importer.tally.ticks)
                    return not stopped.is_set()

                is_whole = importer.run(files, format_name, go_on)
        except BadFile as error:
            raise CommandError(str(error)) from None
        except StoppedAtFault as error:
            raise CommandError(
                f"{fault_line(error.fault)}. The whole minutes before it are stored."
            ) from None
        self.report(importer.tally, facts.symbol, is_whole=is_whole)
        if present_kind(facts.id):
            self.stdout.write(SIMULATED.format(symbol=facts.symbol))
            if not facts.source:
                self.stdout.write(BY_DEFAULT)

    def report(self, tally: ImportTally, symbol: str, *, is_whole: bool) -> None:
        for complaint in complaints(tally):
            self.stderr.write(complaint)
        if is_whole and not tally.ticks:
            raise CommandError("No tick or bar was found, so no candle was made. Is it the right file?")
        self.stdout.write("\n".join(summary(tally, symbol)))
        if not is_whole:
            raise CommandError("Stopped. The same command goes on from here.")


class Command(ImportCommand):
    help = (
        "Import files of ticks, or of one-minute bars, into candles. Formats and packing (.gz, .zip) are "
        "recognised. Stopped with Ctrl-C, the same command goes on; importing twice changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("symbol")
        parser.add_argument("files", nargs="+", metavar="file", help="Oldest first; - is standard input.")
        parser.add_argument(
            "--format", choices=list(FORMATS), help="Needed where the content does not identify it."
        )
        parser.add_argument("--strict", action="store_true", help="Stop at the first bad line.")
        parser.add_argument("--restart", action="store_true", help="Start over instead of resuming.")
        parser.add_argument(
            "--point",
            type=float,
            help="The unit of prices in .bi5. Default: Dukascopy's own for the instrument; for one that it "
            "does not list 0.00001, or 0.001 below 4 digits.",
        )

    def handle(self, *, symbol: str, files: list[str], **options: Any) -> None:
        facts = find_instrument(symbol)
        terms = ImportTerms(facts, settings.CANDLE_PRICE, machine_ms(), options["point"], options["strict"])
        self.import_files(Importer(terms, restart=options["restart"]), facts, files, options["format"])


def total_size(files: list[str], format_name: str | None) -> int:
    """In bytes. Looks into each file first, so that a bad one is reported before anything is done."""
    sizes = []
    for path in files:
        if path != "-":
            with TickFile(path, format_name) as file:
                sizes.append(file.size)
    return sum(sizes) if "-" not in files else 0
