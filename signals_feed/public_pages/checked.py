"""Which results hold, for lists that mark them: checked against evidence and ledger when asked."""

from __future__ import annotations

import time
from collections import OrderedDict
from threading import Lock
from typing import NamedTuple

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from core.plain_json import encode
from signals_feed.api.signals import uuid_of
from signals_feed.checking import check_signals
from signals_feed.models import Signal, SignalQuerySet
from signals_feed.publishers.lookup import Publisher, find

MOST_ASKED = 60
# A check of one publisher computes no more than this, however long they have published.
MOST_OF_PUBLISHER = 500
# A result never changes. This is how soon a visitor sees that somebody changed it all the same.
FRESH_S = 300
MOST_KEPT = 1_000


@require_safe
def checked_signals(request: HttpRequest) -> HttpResponse:
    """The state of each closed signal among those that are asked for."""
    wanted = request.GET.get("ids", "").split(",")[:MOST_ASKED]
    found = closed().filter(pk__in=[pk for text in wanted if (pk := uuid_of(text))])
    states = {str(pk): check.state for pk, check in check_signals(list(found)).items()}
    return fresh({"states": states})


@require_safe
def checked_publisher(request: HttpRequest, user: str) -> HttpResponse:
    """How many of a publisher's newest results were checked, and how many of them hold."""
    publisher = find(user)
    if publisher is None:
        raise Http404
    return fresh(checked_results.of(publisher)._asdict())


def closed() -> SignalQuerySet:
    return Signal.objects.filter(status=Signal.Status.CLOSED).select_related("instrument")


def fresh(found: dict[str, object]) -> HttpResponse:
    headers = {"Cache-Control": f"private, max-age={FRESH_S}"}
    return HttpResponse(encode(found), content_type="application/json", headers=headers)


class CheckedResults(NamedTuple):
    checked: int
    verified: int


class CheckedPublishers:
    """As they were found a short while ago: each check reads hundreds of rows."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[tuple[int, int], tuple[float, CheckedResults]] = OrderedDict()

    def clear(self) -> None:
        self._kept.clear()

    def of(self, publisher: Publisher) -> CheckedResults:
        which = publisher.user_id, publisher.closed
        found_at, found = self._kept.get(which, (float("-inf"), CheckedResults(0, 0)))
        if time.monotonic() - found_at < FRESH_S:
            return found
        # Not under the lock: others need not wait for what is about somebody else.
        found = check_publisher(publisher)
        with self._lock:
            self._kept[which] = time.monotonic(), found
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return found


def check_publisher(publisher: Publisher) -> CheckedResults:
    newest = closed().filter(user_id=publisher.user_id).order_by("-closed_at", "-pk")
    checks = check_signals(list(newest[:MOST_OF_PUBLISHER])).values()
    return CheckedResults(len(checks), sum(check.state == "verified" for check in checks))


checked_results = CheckedPublishers()
