"""The files of one import, in their order, and what all processes hear of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.db import models, transaction

from accounts.outbox import ControlEvent
from market.engine.files.tick_file import TickFile
from market.imports import UnfinishedImport

from .file_import import FileImport, Terms
from .minutes import End
from .tally import Tally


class Importer:
    def __init__(self, terms: Terms, *, restart: bool = False) -> None:
        self.tally = Tally()
        self._terms = terms
        self._restart = restart
        self._end: End | None = None
        """Where the file before ended."""

    def run(self, paths: Sequence[str], format_name: str | None, watch: Callable[[TickFile], bool]) -> bool:
        """False if the watcher, who is asked after each batch, stopped it."""
        digests = []
        try:
            for path in paths:
                with TickFile(path, format_name) as file:
                    digests.append(file.digest())
                    if not self._take(file, digests[-1], watch):
                        return False
        finally:
            # Whatever ended it, what was stored counts.
            self._publish()
        self._of(digests).delete()
        return True

    def _take(self, file: TickFile, digest: str, watch: Callable[[TickFile], bool]) -> bool:
        if self._restart:
            self._of([digest]).delete()
        importing = FileImport(self._terms, file, digest, self.tally, self._end)
        is_whole = importing.run(lambda: watch(file))
        self._end = importing.end or self._end
        return is_whole

    def _publish(self) -> None:
        if self.tally.minutes:
            with transaction.atomic():
                ControlEvent.objects.publish("market.candles_imported", symbol=self._terms.facts.symbol)

    def _of(self, digests: list[str]) -> models.QuerySet[UnfinishedImport]:
        return UnfinishedImport.objects.filter(instrument_id=self._terms.facts.id, digest__in=digests)
