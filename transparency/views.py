"""The public reads of the log: no key, plain text."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from . import merkle
from .checkpoints import SIZE, write_hash
from .models import LogKey, SignedCheckpoint, Tile

PROOFS = (
    "position=5&size=9 proves that entry 5 is in the tree of the first 9 entries, and old=5&size=9 that this"
    " tree extends that of the first 5. Without size, it is that of the newest checkpoint."
)


def plain(text: str, status: int = 200) -> HttpResponse:
    headers = {"Cache-Control": "no-cache"}
    return HttpResponse(text, status=status, headers=headers, content_type="text/plain; charset=utf-8")


@require_safe
def newest_checkpoint(request: HttpRequest) -> HttpResponse:
    return shown(SignedCheckpoint.objects.newest(), newest=True)


@require_safe
def checkpoint(request: HttpRequest, size: str) -> HttpResponse:
    """Of the present log, or else of one before it."""
    return shown(SignedCheckpoint.objects.filter(size=int(size)).order_by("pk").last(), newest=False)


def shown(signed: SignedCheckpoint | None, *, newest: bool) -> HttpResponse:
    if signed is None:
        return plain("There is no such checkpoint.\n", status=404)
    return plain(signed.with_cosignatures(newest=newest))


@require_safe
def keys(request: HttpRequest) -> HttpResponse:
    """The current one first."""
    return plain(lines(LogKey.objects.order_by("-pk").values_list("verifier", flat=True)))


@require_safe
def proofs(request: HttpRequest) -> HttpResponse:
    newest = SignedCheckpoint.objects.newest()
    most = newest.size if newest else 0
    asked = {name: whole(request.GET.get(name, "")) for name in ("position", "old")}
    size = whole(request.GET["size"]) if "size" in request.GET else most
    (name, number), *others = [each for each in asked.items() if each[0] in request.GET] or [("", None)]
    if others or number is None or size is None:
        return plain(f"{PROOFS}\n", status=400)
    if not (name == "old" or number) or not number <= size <= most:
        return plain(f"There is no such proof: checkpoints reach to {most}. {PROOFS}\n", status=404)
    tiles = Tile.objects.read(merkle.tiles_for(size, max(0, number - 1)))
    make = merkle.consistency_proof if name == "old" else merkle.inclusion_proof
    return plain(lines(map(write_hash, make(tiles, number if name == "old" else number - 1, size))))


def whole(text: str) -> int | None:
    return int(text) if SIZE.fullmatch(text) else None


def lines(texts: Iterable[str]) -> str:
    return "".join(f"{text}\n" for text in texts)
