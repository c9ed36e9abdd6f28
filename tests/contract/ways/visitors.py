"""Who asks at one door, and what is the same of the answers of all."""

from __future__ import annotations

import re

from serving.http.bounds import END_OF_HEAD
from tests.factories import NOON, make_account, make_key, make_tier

from .doors import Door, Talk
from .requests import HOST, Asked, get

TIMES = 3
"""At first the head is new, then remembered."""

# Each answer has an id of its own, and the clock that frees slots goes on.
VARYING = {
    rb"req_[a-z2-7]{16}": b"ID",
    rb"(?i)(x-ratelimit-reset|retry-after): \d+": rb"\1: N",
    rb"(?i)(ratelimit: [^\r]*;t=)\d+": rb"\1N",
    rb"Try again in \d+ s": b"Try again in N s",
    rb'"reset":\d+': b'"reset":N',
}
# daphne says no date, its own name behind the others, capitals in names, and no reason for a 429.
SERVERS_OWN = re.compile(rb"(?i)\r\n(date|server): [^\r]*|(?<=^HTTP/1.1 \d{3}) [^\r]*")
NAME = re.compile(rb"(?<=\r\n)[^:\r]+:")


class Visitor:
    """Asks at one door, with keys of its own: each account counts for itself."""

    def __init__(self, door: Door, requests_per_minute: int = 100_000) -> None:
        self.door = door
        tier = make_tier(f"of{requests_per_minute}", requests_per_minute=requests_per_minute)
        self.account = make_account(tier=tier)
        self._names = {
            b"{key}": make_key(self.account).encode(),
            b"{demo}": make_key(make_account(tier=tier, is_demo=True)).encode(),
            b"{revoked}": make_key(self.account, revoked_at=NOON).encode(),
        }
        self.talk = Talk(door)
        # From now on its keys are known.
        for key in (b"{key}", b"{demo}"):
            self.ask(get(b"/api/limits", HOST, b"X-API-Key: " + key))

    def ask(self, asked: Asked) -> bytes:
        return self.ask_together(asked)

    def ask_together(self, *asked: Asked) -> bytes:
        """All answers to what is sent in one go."""
        heads = b"".join(each.head for each in asked)
        for name, value in self._names.items():
            heads = heads.replace(name, value)
        return settled(self.talk.ask(heads, len(asked)))

    def ask_again(self, asked: Asked) -> list[bytes]:
        return [self.ask(asked) for _ in range(TIMES)]

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *raised: object) -> None:
        self.talk.close()


def settled(answer: bytes) -> bytes:
    """Without what is another each time."""
    for pattern, text in VARYING.items():
        answer = re.sub(pattern, text, answer)
    return answer


def plainly(answer: bytes) -> bytes:
    """Without what servers say of themselves."""
    head, end, body = answer.partition(END_OF_HEAD)
    return NAME.sub(lambda found: found[0].lower(), SERVERS_OWN.sub(b"", head)) + end + body
