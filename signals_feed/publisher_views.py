"""GET /api/publishers/{user}: how well a publisher does, over every signal."""

from __future__ import annotations

from django.http import HttpRequest

from accounts.api import Answer, ApiViewSet, encode
from accounts.exceptions import NotFound
from accounts.schema import describes
from accounts.threads import in_thread_promptly

from .publisher_items import describe_publisher
from .publisher_serializers import PublisherSerializer
from .publishers import NO_SUCH_PUBLISHER, find, scorecards


class PublisherViewSet(ApiViewSet):
    @describes(
        "getPublisher",
        PublisherSerializer,
        "A publisher's scorecard",
        tag="Signals",
        details="Over all closed signals, expired and cancelled ones included, none left out. 1 R is what a"
        " signal risked: the distance from the price that was paid to the stop.",
        refusals=[NotFound(NO_SUCH_PUBLISHER)],
    )
    async def retrieve(self, request: HttpRequest, user: str) -> Answer:
        body = await in_thread_promptly(read_scorecard, user)
        if body is None:
            raise NotFound(NO_SUCH_PUBLISHER)
        return Answer(body)


def read_scorecard(user: str) -> bytes | None:
    publisher = find(user)
    if publisher is None:
        return None
    return scorecards.read(publisher, lambda card: encode(describe_publisher(publisher, card)))
