"""The watcher's notes, which the engine writes with its checkpoints and an engine that starts reads."""

import msgspec

from core.times import epoch_ms_after, moment
from signals_feed.models import Hit, Signal, WatchMark

from .closing import Closing


def read_mark_ms() -> int:
    """The time up to which the stored minutes have been judged."""
    at = WatchMark.objects.values_list("watched_until", flat=True).first()
    return 0 if at is None else epoch_ms_after(at)


def read_hits() -> list[Closing]:
    """The closings that another watcher noted but could no longer carry out."""
    Hit.objects.filter(signal__status=Signal.Status.CLOSED).delete()
    return [msgspec.convert(hit.closing, Closing) for hit in Hit.objects.order_by("pk")]


def write_notes(hits: list[Closing], watched_until_ms: int) -> None:
    if hits:
        open_ = set(
            Signal.objects.active().filter(pk__in=[hit.signal for hit in hits]).values_list("pk", flat=True)
        )
        Hit.objects.bulk_create(
            [
                Hit(signal_id=hit.signal, closing=msgspec.to_builtins(hit, str_keys=True))
                for hit in hits
                if hit.signal in open_
            ],
            ignore_conflicts=True,
        )
    if watched_until_ms:
        at = moment(watched_until_ms)
        if not WatchMark.objects.filter(pk=1).update(watched_until=at):
            WatchMark.objects.create(pk=1, watched_until=at)
