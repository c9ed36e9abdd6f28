"""Who is subscribed to what: topics, their audiences, and the groups that share all their audiences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from .groups import Audience, Group

NOBODY: Mapping[int, Audience] = MappingProxyType({})


class Members:
    def __init__(self) -> None:
        self._topics: dict[str, dict[int, Audience]] = {}
        self._groups: dict[frozenset[Audience], Group] = {}

    @property
    def number(self) -> int:
        return sum(len(group.seats) for group in self._groups.values())

    @property
    def groups(self) -> list[Group]:
        return list(self._groups.values())

    def audiences(self, topic: str) -> Mapping[int, Audience]:
        return self._topics.get(topic, NOBODY)

    def with_topics(self, group: Group, topics: Iterable[str], variant: int) -> Group:
        wanted = {self._audience(topic, variant) for topic in topics}
        names = {audience.topic for audience in wanted}
        return self.group(wanted | {kept for kept in group.audiences if kept.topic not in names})

    def without_topics(self, group: Group, topics: set[str]) -> Group:
        return self.group({kept for kept in group.audiences if kept.topic not in topics})

    def group(self, audiences: Iterable[Audience] = ()) -> Group:
        key = frozenset(audiences)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(key)
            for audience in key:
                audience.groups[group] = None
        return group

    def tidy(self, group: Group) -> None:
        """Forget a group that nobody is in, and the audiences that nobody else is in."""
        if group.seats:
            return
        del self._groups[group.audiences]
        for audience in group.audiences:
            del audience.groups[group]
            if not audience.groups:
                variants = self._topics[audience.topic]
                del variants[audience.variant]
                if not variants:
                    del self._topics[audience.topic]

    def _audience(self, topic: str, variant: int) -> Audience:
        variants = self._topics.setdefault(topic, {})
        if variant not in variants:
            variants[variant] = Audience(topic, variant)
        return variants[variant]
