"""Secrets out of text to be logged: by their form, by the name before them, our own by value. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

HIDDEN = "***"
# Shorter ones are words that stand in any line.
SHORTEST_OWN = 12
NAMES = (
    r"x-api-key|api[-_]?key|x-ingest-key|ingest[-_]?key|authorization|token|access_token|password\d?|passwd"
    r"|secret|sessionid|csrftoken|cookie|credential"
)
RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # Our keys: the public prefix stays, by which staff find them.
    (re.compile(r"(tw_[a-z]{1,12}_[0-9A-Za-z]{8})[0-9A-Za-z]{4,}"), rf"\1{HIDDEN}"),
    (re.compile(r"\bpt_[0-9]{1,20}-[0-9]{1,20}\.[\w-]+"), f"pt_{HIDDEN}"),
    # The password in an address of a database or a proxy.
    (re.compile(r"(://[^\s/:@]{0,100}:)[^\s/@]{1,200}@"), rf"\1{HIDDEN}@"),
    (re.compile(r"(?i)\b(bearer|basic) [\w.~+/=:-]{4,}"), rf"\1 {HIDDEN}"),
    # Links that let somebody in.
    (re.compile(r"(/(?:demo-login|confirm-email|reset/key)/)[^\s/?'\"]+"), rf"\1{HIDDEN}"),
    (re.compile(rf"(?i)\b({NAMES})(=|%3d)[^\s&'\"<>]+"), rf"\1\2{HIDDEN}"),
    (re.compile(rf"(?i)\b({NAMES})(\\?['\"]?: ?b?\\?['\"]?)[^\s&'\"<>,}}\\]+"), rf"\1\2{HIDDEN}"),
)


class Redactor:
    def __init__(self, own: Iterable[str]) -> None:
        """`own` are the secrets of this installation, whatever they look like."""
        self._own = sorted({each for each in own if len(each) >= SHORTEST_OWN}, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for secret in self._own:
            if secret in text:
                text = text.replace(secret, HIDDEN)
        for pattern, replacement in RULES:
            text = pattern.sub(replacement, text)
        return text
