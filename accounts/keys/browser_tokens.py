"""Keys of our own pages, signed: whose session and until when. POST /page-token issues one to the page that
asks, good for five minutes and for as long as it asks again."""

import time
from typing import NamedTuple

from django.core.signing import BadSignature, Signer

BROWSER_TOKEN_LEAD = "pt_"  # noqa: S105 - how each begins
LIVES_S = 300
MAX_LENGTH = 100


class BrowserToken(NamedTuple):
    page_session: int
    ends_at: int
    """Epoch seconds."""

    @property
    def has_ended(self) -> bool:
        return self.ends_at <= time.time()


def _signer() -> Signer:
    return Signer(salt="accounts.page_tokens", sep=".")


def issue_browser_token(page_session: int) -> tuple[str, BrowserToken]:
    token = BrowserToken(page_session, int(time.time()) + LIVES_S)
    return BROWSER_TOKEN_LEAD + _signer().sign(f"{token.page_session}-{token.ends_at}"), token


def read_browser_token(text: str) -> BrowserToken | None:
    """None for what we did not sign. A token may have ended."""
    if not text.startswith(BROWSER_TOKEN_LEAD) or len(text) > MAX_LENGTH or not text.isascii():
        return None
    try:
        signed = _signer().unsign(text.removeprefix(BROWSER_TOKEN_LEAD))
    except BadSignature:
        return None
    page_session, ends_at = signed.split("-")
    return BrowserToken(int(page_session), int(ends_at))
