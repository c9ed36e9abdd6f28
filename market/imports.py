"""Imports that were begun and not yet finished, so that they can go on where they stopped."""

from __future__ import annotations

from django.db import models

IMPORTED = "import"
"""The source of minutes that come from files: nobody was ever quoted them."""


class UnfinishedImport(models.Model):
    """How far a file came, written in the transaction of its candles. A finished import has none."""

    instrument = models.ForeignKey("instruments.Instrument", on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64, help_text="SHA-256 of the file.")
    basis = models.CharField(max_length=6)
    # Minutes before this one are stored; its first tick is in the block that begins here.
    minute_at = models.DateTimeField()
    offset = models.PositiveBigIntegerField()
    line = models.PositiveBigIntegerField()
    # Null where the version before wrote it, which may run beside this one.
    got_on_at = models.DateTimeField(auto_now=True, null=True)

    class Meta:
        app_label = "market"
        constraints = (
            models.UniqueConstraint(
                fields=("instrument", "digest", "basis"), name="unfinished_import_is_unique"
            ),
        )

    def __str__(self) -> str:
        return f"{self.instrument_id} {self.digest[:12]} up to {self.minute_at:%Y-%m-%d %H:%M}"
