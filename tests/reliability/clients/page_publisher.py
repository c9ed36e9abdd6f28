"""Somebody who goes on publishing signals on the page, and knows what they were told. The ticks of a `Source`
close every second one."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from functools import partial
from typing import Any
from uuid import uuid4

import httpx
from django.conf import settings

from tests.patience import PATIENCE_S, wait_until
from tests.reliability.clients.person import TOKEN
from tests.reliability.clients.writer import Writer

PAGE = "/settings/signals"
NEXT_S, AGAIN_S = 0.15, 0.1
# Above every ask of a source.
ENTRY = "1.005"
STOPPED = ("closed", "stop_loss")
# What becomes of a signal, by its stop: the bids of a source come back to the first again and again.
ENDS = {"1.00001": STOPPED, "0.5": ("active", "")}
STOPS = tuple(ENDS)


class PagePublisher(Writer):
    def __init__(self, name: str, session: str, key: str, symbol: str) -> None:
        self._name, self._symbol = name, symbol
        self._cookies = {settings.SESSION_COOKIE_NAME: session, settings.CSRF_COOKIE_NAME: TOKEN}
        self._headers = {"X-API-Key": key}
        self._numbers = itertools.count(1)
        self.url = ""
        self.acknowledged: dict[str, str] = {}
        """The stops of the signals that were said to be published, by target: no two have the same."""
        self.ids: dict[str, str] = {}
        """Those of them that were in the feed right afterwards, by target."""
        self.answers: Counter[str] = Counter()

    def turn(self) -> None:
        number = next(self._numbers)
        target, stop = f"{9 + number / 100_000:.5f}", STOPS[number % len(STOPS)]
        form = {
            **{"csrfmiddlewaretoken": TOKEN, "token": str(uuid4()), "symbol": self._symbol},
            **{"direction": "buy", "entry": ENTRY, "stop_loss": stop, "take_profit": target},
        }
        # The same form until it is taken: sent twice, it is one signal.
        while not self._send(form):
            if self.has_ended.is_set():
                return
            time.sleep(AGAIN_S)
        self.acknowledged[target] = stop
        newest = self._feed("?status=all&limit=5&user=" + self._name)["items"]
        self.ids |= {f"{each['take_profit']:.5f}": each["id"] for each in newest}
        time.sleep(NEXT_S)

    def _send(self, form: dict[str, str]) -> bool:
        """Whether it was said to be published. The page answers a good form by leading back to itself."""
        try:
            answer = httpx.post(f"{self.url}{PAGE}", data=form, cookies=self._cookies, timeout=PATIENCE_S)
        except httpx.TransportError as error:
            self.answers[type(error).__name__] += 1
            return False
        is_taken = answer.status_code == 302 and answer.headers["location"].partition("?")[0] == PAGE
        self.answers["published" if is_taken else str(answer.status_code)] += 1
        return is_taken

    def _feed(self, rest: str) -> Any:
        """None for what is not there."""
        answer = httpx.get(f"{self.url}/api/signals{rest}", headers=self._headers, timeout=PATIENCE_S)
        return None if answer.status_code == 404 else answer.raise_for_status().json()

    def ends(self) -> dict[str, tuple[str, str]]:
        """By target, what the feed says now of the signals that were acknowledged; nothing if it has none."""
        known = {target: self.ids[target] for target in self.acknowledged if target in self.ids}
        found = {target: self._feed(f"/{signal}") for target, signal in known.items()}
        return {
            target: (each["status"], each.get("close_reason", ""))
            for target, each in found.items()
            if each and f"{each['take_profit']:.5f}" == target
        }

    def wait_for_the_ticks(self) -> None:
        """Until they have closed what they are to close."""
        due = [target for target, stop in self.acknowledged.items() if ENDS[stop] == STOPPED]
        for signal in (self.ids[target] for target in due if target in self.ids):
            wait_until(partial(self._is_over, signal))

    def _is_over(self, signal: str) -> bool:
        """Or it is gone."""
        found = self._feed(f"/{signal}")
        return found is None or found["status"] == "closed"

    def wrong(self) -> dict[str, tuple[str, str] | None]:
        """By target, what became of signals that were acknowledged and did not end as they had to."""
        ends = self.ends()
        return {
            target: ends.get(target)
            for target, stop in self.acknowledged.items()
            if ends.get(target) != ENDS[stop]
        }
