"""What a stream has of a hub that several share: topics that begin with its name, and frames that say it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

from serving.websocket.connection import frame

from .hub import Hub, MakeNotice
from .subscribers import Publication, ReplaceablePublication, Subscriber, can_replace, ignore_end


class Share:
    """It is used like a hub of the stream's own."""

    def __init__(self, hub: Hub, name: str) -> None:
        self._hub, self._lead = hub, f"{name}:"
        self._opening = b'{"stream":"%b",' % name.encode()

    @property
    def topics(self) -> frozenset[str]:
        return self._own(self._hub.topics)

    def topics_of(self, subscriber: Subscriber) -> frozenset[str]:
        return self._own(subscriber.topics)

    def has(self, topic: str) -> bool:
        return self._hub.has(self._lead + topic)

    def written(self, text: bytes) -> bytes:
        return frame(self.named(text))

    def named(self, text: bytes) -> bytes:
        """The same object with the name of its stream spliced in, not encoded again."""
        return self._opening + text[1:]

    def subscribe(self, subscriber: Subscriber, topics: Iterable[str], variant: int = 0) -> None:
        self._hub.subscribe(subscriber, [self._lead + topic for topic in topics], variant, self._lead)

    def publish(self, message: Publication, *topics: str, since_ms: int = 0, dated_ms: int = 0) -> None:
        followed = [name for name in (self._lead + topic for topic in topics) if self._hub.has(name)]
        if followed:
            kind = NamedReplaceable if can_replace(message) else Named
            self._hub.publish(kind(message, self), *followed, since_ms=since_ms, dated_ms=dated_ms)

    def notify(self, make: MakeNotice, on_end: Callable[[], None] = ignore_end, variant: int = 0) -> None:
        def make_named(topics: frozenset[str]) -> bytes | None:
            own = self._own(topics)
            text = make(own) if own else None
            return None if text is None else self.named(text)

        self._hub.notify(make_named, on_end, variant)

    def _own(self, topics: frozenset[str]) -> frozenset[str]:
        lead = self._lead
        return frozenset(topic.removeprefix(lead) for topic in topics if topic.startswith(lead))


class Named:
    """A frame that says the name of its stream."""

    __slots__ = ("_plain", "_share")

    def __init__(self, plain: Publication, share: Share) -> None:
        self._plain, self._share = plain, share

    @property
    def frame(self) -> bytes:
        return self._share.named(self._plain.frame)

    def payload(self, variant: int) -> bytes:
        return self._share.named(self._plain.payload(variant))


class NamedReplaceable(Named):
    __slots__ = ()

    def over(self, older: ReplaceablePublication) -> NamedReplaceable:
        newer, older = cast(ReplaceablePublication, self._plain), cast(NamedReplaceable, older)
        return NamedReplaceable(newer.over(cast(ReplaceablePublication, older._plain)), self._share)

    def notice(self, dropped: int) -> bytes:
        return self._share.named(cast(ReplaceablePublication, self._plain).notice(dropped))
