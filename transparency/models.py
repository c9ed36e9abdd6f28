"""What the log keeps: its keys, its tree, and what it has signed."""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping
from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import Q, Subquery
from django.utils import timezone

from .checkpoints import Checkpoint
from .keys import VerifierKey
from .merkle import Place


def current_origin() -> Subquery:
    return Subquery(LogKey.objects.order_by("-pk").values("origin")[:1])


class LogKeyQuerySet(models.QuerySet["LogKey"]):
    def current(self) -> LogKey | None:
        return self.order_by("pk").last()

    def of_current_log(self) -> LogKeyQuerySet:
        """In the order in which they were made. An earlier log may have ended."""
        return self.filter(origin=current_origin()).order_by("pk")

    def signing(self, now: datetime) -> LogKeyQuerySet:
        return self.of_current_log().filter(Q(signs_until=None) | Q(signs_until__gt=now))


class LogKey(models.Model):
    """A key of the log. Old ones stay, because what they signed stays."""

    origin = models.CharField(max_length=255, help_text="The name of the log, fixed when the key is made.")
    verifier = models.CharField(
        max_length=400, unique=True, help_text="The public key, for those who verify."
    )
    sealed = models.TextField(help_text="The private key, sealed with KEY_PEPPER.")
    made_at = models.DateTimeField(default=timezone.now)
    signs_until = models.DateTimeField(null=True, blank=True, help_text="Empty for the current key.")

    objects = LogKeyQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                name="log_has_one_current_key", fields=("origin",), condition=Q(signs_until=None)
            ),
        )

    def __str__(self) -> str:
        return self.verifier

    @property
    def key(self) -> VerifierKey:
        return VerifierKey.read(self.verifier)


class TileManager(models.Manager["Tile"]):
    def read(self, places: Collection[Place]) -> dict[Place, bytes]:
        """Those that there are."""
        wanted = Q()
        for level in {place.level for place in places}:
            numbers = [place.number for place in places if place.level == level]
            wanted |= Q(level=level, number__in=numbers)
        rows = self.filter(wanted).values_list("level", "number", "hashes") if places else ()
        return {Place(level, number): base64.b64decode(hashes) for level, number, hashes in rows}

    def write(self, changed: Mapping[Place, bytes]) -> None:
        self.bulk_create(
            (
                Tile(level=place.level, number=place.number, hashes=base64.b64encode(hashes).decode())
                for place, hashes in changed.items()
            ),
            update_conflicts=True,
            unique_fields=("level", "number"),
            update_fields=("hashes",),
        )


class Tile(models.Model):
    """Up to 256 hashes of the tree, side by side on one level (merkle.py): they follow from the entries."""

    level = models.PositiveSmallIntegerField()
    number = models.PositiveBigIntegerField()
    hashes = models.TextField(help_text="In Base64.")

    objects = TileManager()

    class Meta:
        constraints = (models.UniqueConstraint(name="tile_is_there_once", fields=("level", "number")),)

    def __str__(self) -> str:
        return f"{self.level}/{self.number}"


class SignedCheckpointQuerySet(models.QuerySet["SignedCheckpoint"]):
    def of_current_log(self) -> SignedCheckpointQuerySet:
        return self.filter(origin=current_origin())

    def newest(self) -> SignedCheckpoint | None:
        return self.of_current_log().order_by("-size").first()


class SignedCheckpoint(models.Model):
    """Stored before it is shown, and never taken back."""

    origin = models.CharField(max_length=255)
    size = models.PositiveBigIntegerField(help_text="How many entries it is about.")
    note = models.TextField(help_text="The checkpoint with the signatures of the log.")
    made_at = models.DateTimeField()
    signed_at = models.DateTimeField(help_text="Later than made_at where it was signed again without growth.")

    objects = SignedCheckpointQuerySet.as_manager()

    class Meta:
        constraints = (models.UniqueConstraint(name="checkpoint_is_there_once", fields=("origin", "size")),)

    def __str__(self) -> str:
        return f"{self.origin} {self.size}"

    def with_cosignatures(self, *, newest: bool) -> str:
        """Of each witness the newest, or the one that proves the most: the first."""
        lines = self.cosignatures.order_by("pk").values_list(
            "last_line" if newest else "first_line", flat=True
        )
        return self.note + "".join(lines)

    @property
    def checkpoint(self) -> Checkpoint:
        return Checkpoint.read(self.note)


class CosignatureManager(models.Manager["Cosignature"]):
    def last_of(self, witness: str) -> Cosignature | None:
        return self.filter(witness=witness).select_related("checkpoint").order_by("-pk").first()

    def add(
        self, signed: SignedCheckpoint, witness: str, at: datetime, line: str, asked_at: datetime
    ) -> None:
        last = {"last_at": at, "last_line": line, "asked_at": asked_at}
        first = {"first_at": at, "first_line": line}
        self.update_or_create(checkpoint=signed, witness=witness, defaults=last, create_defaults=last | first)
        Objection.objects.filter(origin=signed.origin, witness=witness).delete()


class Cosignature(models.Model):
    """That a witness saw a checkpoint: when first, and when last if it was asked again without growth, by its
    own clock."""

    checkpoint = models.ForeignKey(SignedCheckpoint, models.CASCADE, related_name="cosignatures")
    witness = models.CharField(max_length=400, help_text="Its public key.")
    first_at = models.DateTimeField()
    first_line = models.TextField()
    last_at = models.DateTimeField()
    last_line = models.TextField()
    asked_at = models.DateTimeField(help_text="By the clock here.")

    objects = CosignatureManager()

    class Meta:
        constraints = (
            models.UniqueConstraint(name="witness_cosigns_once", fields=("checkpoint", "witness")),
        )
        indexes = (models.Index(name="last_of_witness", fields=("witness", "-id")),)

    def __str__(self) -> str:
        return f"{self.witness} {self.checkpoint_id}"


class ObjectionQuerySet(models.QuerySet["Objection"]):
    def against(self, count: int) -> Objection | None:
        """The objection of a witness that is still asked to a ledger of `count` entries."""
        keys = [str(each.key) for each in settings.WITNESSES]
        if not keys:
            return None
        own = self.filter(origin=current_origin(), witness__in=keys)
        return own.filter(Q(size=None) | Q(size__gt=count)).order_by("pk").first()


class Objection(models.Model):
    """That a witness has cosigned what the ledger does not have. It ends when the witness cosigns again."""

    origin = models.CharField(max_length=255)
    witness = models.CharField(max_length=400, help_text="Its public key.")
    size = models.PositiveBigIntegerField(
        null=True, help_text="How many entries it has cosigned; empty where they were others."
    )

    objects = ObjectionQuerySet.as_manager()

    class Meta:
        constraints = (models.UniqueConstraint(name="witness_objects_once", fields=("origin", "witness")),)

    def __str__(self) -> str:
        name = VerifierKey.read(self.witness).name
        if self.size is None:
            return f"The ledger is not the one that {name} has cosigned."
        return f"The ledger lacks entries: {name} has cosigned {self.size}."
