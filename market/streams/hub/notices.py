"""Notices of what becomes of symbols. Each list of symbols is encoded once, and a crowd is told part by part,
so that nobody else waits for it."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from serving.websocket.framing import frame

from .backlog import LatestBacklog
from .subscribers import AnyHub, Group, Subscriber, ignore_end

# In one turn of the loop: some milliseconds.
AT_ONCE = 500
Make = Callable[[frozenset[str]], bytes | None]
"""Makes the notice for clients with these topics, or None where it does not concern them."""


class Notices:
    """One after the other, so that everybody hears them in their order."""

    def __init__(self, hub: AnyHub) -> None:
        self._hub = hub
        self._waiting: deque[tuple[Iterator[tuple[Subscriber, bytes]], Callable[[], None]]] = deque()

    def tell(self, groups: Iterable[Group], make: Make, on_end: Callable[[], None] = ignore_end) -> None:
        """`on_end` is called when everybody has been told."""
        # Settled now: a client that subscribes later learns it from the answer.
        due = [(list(group.subscribers), topics_of(group)) for group in groups if group.subscribers]
        self._waiting.append((_each(due, make), on_end))
        if len(self._waiting) == 1:
            self._go_on()

    def _go_on(self) -> None:
        while self._waiting:
            each, on_end = self._waiting[0]
            some = list(islice(each, AT_ONCE))
            for subscriber, data in some:
                # What was published before comes before it, and nothing newer stands for that.
                if isinstance(subscriber.backlog, LatestBacklog):
                    subscriber.backlog.line_up()
                subscriber.send(data)
            if len(some) == AT_ONCE:
                self._hub.loop.call_soon(self._go_on)
                return
            self._waiting.popleft()
            on_end()


def _each(
    due: list[tuple[list[Subscriber], frozenset[str]]], make: Make
) -> Iterator[tuple[Subscriber, bytes]]:
    for subscribers, topics in due:
        text = make(topics)
        if text is not None:
            data = frame(text)
            yield from ((subscriber, data) for subscriber in subscribers if subscriber.is_open)


def topics_of(group: Group) -> frozenset[str]:
    return frozenset(audience.topic for audience in group.audiences)
