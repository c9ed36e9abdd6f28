"""POST /page-token: a key for the page that asks, good for five minutes and for as long as it asks again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache

from accounts.login.sessions import VISITOR
from accounts.models import Account, PageSession
from core.contract.answers import iso_time, new_request_id
from core.contract.errors import ApiError, MethodNotAllowed, answer_error
from core.plain_json import encode
from demo import visitors

from .browser_tokens import BrowserToken, issue_browser_token

# Its last use, which keeps a visitor's account, is written no oftener.
USE_WRITTEN_EVERY = timedelta(minutes=1)


class LoginNeeded(ApiError):
    status_code, code = 403, "login_required"
    message = "Log in first: this page has no account to ask for."


@never_cache
def page_token(request: HttpRequest) -> HttpResponse:
    try:
        text, token = issue_token(request)
    except ApiError as error:
        return refuse(error)
    told = {"token": text, "expires_at": iso_time(datetime.fromtimestamp(token.ends_at, UTC))}
    return HttpResponse(encode(told), content_type="application/json")


def refuse(error: ApiError) -> HttpResponse:
    request_id = new_request_id()
    refusal = answer_error(error, {"request_id": request_id})
    refusal["X-Request-Id"] = request_id
    return refusal


def issue_token(request: HttpRequest) -> tuple[str, BrowserToken]:
    if request.method != "POST":
        refusal = MethodNotAllowed("This path answers POST.")
        refusal.headers["Allow"] = "POST"
        raise refusal
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
    if not settings.DEMO:
        raise LoginNeeded
    address = request.META.get("REMOTE_ADDR") or ""
    known = PageSession.objects.filter(session_key=request.session.session_key or "").first()
    if known is not None and VISITOR in request.session:
        return known
    # Before the session, which is a row too.
    visitors.check_room(address)
    return open_visitor(visitor_session(request), address)


def visitor_session(request: HttpRequest) -> str:
    """The key of the browser's session; there is one from now on."""
    if VISITOR not in request.session:
        request.session[VISITOR] = True
    if request.session.session_key is None:
        request.session.create()
    return str(request.session.session_key)


def open_visitor(key: str, address: str) -> PageSession:
    visitors.prune()
    try:
        with transaction.atomic():
            return PageSession.objects.create(session_key=key, account=visitors.open_account(address))
    except IntegrityError:
        # Another tab of the same browser came first.
        return PageSession.objects.get(session_key=key)
