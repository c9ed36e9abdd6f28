"""The files of one import, in their order, and what all processes hear of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.db import models, transaction

from accounts.outbox import ControlEvent
from market.engine.files.tick_file import TickFile, digest
from market.imports import UnfinishedImport
from market.prices.ticks import Tick

from .file_import import FileImport, Terms
from .minutes import End
from .quote import keep_quote
from .tally import Tally


class Importer:
    def __init__(self, terms: Terms, *, restart: bool = False) -> None:
        self.tally = Tally()
        self._terms = terms
        self._restart = restart
        self._end: End | None = None
        """Where the file before ended."""
        self._quote: Tick | None = None
        """The newest bid and ask of files that have both."""

    def run(self, paths: Sequence[str], format_name: str | None, watch: Callable[[TickFile], bool]) -> bool:
        """False if the watcher, who is asked after each batch, stopped it."""
        digests = [digest(path) for path in paths]
        if self._restart:
            self._of(digests).delete()
        begun = self._begun(digests)
        try:
            for path, known in list(zip(paths, digests, strict=True))[begun:]:
                with TickFile(path, format_name) as file:
                    if not self._take(file, known, watch):
                        return False
        finally:
            # Whatever ended it, what was stored counts.
            self._publish()
        self._of(digests).delete()
        return True

    def _begun(self, digests: list[str]) -> int:
        """The last file that an import before this one began. Those before it are stored; the last minute
        of one of them is not to be stored again without what the next one added."""
        known = set(self._of(digests).values_list("digest", flat=True))
        return max((number for number, digest in enumerate(digests) if digest in known), default=0)

    def _take(self, file: TickFile, digest: str, watch: Callable[[TickFile], bool]) -> bool:
        importing = FileImport(self._terms, file, digest, self.tally, self._end)
        try:
            return importing.run(lambda: watch(file))
        finally:
            self._end = importing.end or self._end
            quote = importing.last_quote
            if quote is not None and (self._quote is None or quote.time_ms > self._quote.time_ms):
                self._quote = quote

    def _publish(self) -> None:
        if self.tally.minutes:
            with transaction.atomic():
                if self._quote is not None:
                    keep_quote(self._terms.facts, self._quote)
                ControlEvent.objects.publish("market.candles_imported", symbol=self._terms.facts.symbol)

    def _of(self, digests: list[str]) -> models.QuerySet[UnfinishedImport]:
        bases = self._terms.candle_price, "trades"
        instrument_id = self._terms.facts.id
        return UnfinishedImport.objects.filter(
            instrument_id=instrument_id, digest__in=digests, basis__in=bases
        )
