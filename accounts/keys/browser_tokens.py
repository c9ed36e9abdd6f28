"""Keys of our own pages, signed: whose session and until when. POST /page-token issues one to the page that
asks, good for five minutes and for as long as it asks again."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from django.core.signing import BadSignature, Signer
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache

from accounts.models import Account, PageSession
from core.contract.errors import ApiError, MethodNotAllowed, answer_exception, new_request_id
from core.plain_json import encode
from core.times import iso_ms

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


# Its last use, which keeps a visitor's account, is written no oftener.
USE_WRITTEN_EVERY = timedelta(minutes=1)


def nobody(request: HttpRequest) -> None:
    return None


find_visitor: Callable[[HttpRequest], PageSession | None] = nobody
"""The session of somebody who is not logged in, where such people have an account too."""


class LoginNeeded(ApiError):
    status_code, code = 403, "login_required"
    message = "Log in first: this page has no account to ask for."


@never_cache
def page_token(request: HttpRequest) -> HttpResponse:
    try:
        text, token = issue_token(request)
    except ApiError as error:
        answer = answer_exception(error, new_request_id())
        return HttpResponse(
            answer.content, status=answer.status, headers=answer.headers, content_type="application/json"
        )
    token_body = {"token": text, "expires_at": iso_ms(1000 * token.ends_at)}
    return HttpResponse(encode(token_body), content_type="application/json")


def issue_token(request: HttpRequest) -> tuple[str, BrowserToken]:
    if request.method != "POST":
        raise MethodNotAllowed(("POST",))
    page_session = find_page_session(request)
    now = timezone.now()
    if now - page_session.last_used_at > USE_WRITTEN_EVERY:
        PageSession.objects.filter(pk=page_session.pk).update(last_used_at=now)
    return issue_browser_token(page_session.pk)


def find_page_session(request: HttpRequest) -> PageSession:
    if request.user.is_authenticated:
        account = Account.objects.for_user(request.user)
        key = str(request.session.session_key)
        return PageSession.objects.get_or_create(session_key=key, defaults={"account": account})[0]
    page_session = find_visitor(request)
    if page_session is None:
        raise LoginNeeded
    return page_session
