"""The public pages: the first page, prices, texts, and what machines look for."""

from collections.abc import Iterable
from datetime import timedelta
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.cache import cache_control, never_cache
from django.views.decorators.http import require_safe

from accounts.models import TIER_LIMITS, Account, Tier, TierRequest
from core.clock import machine_ms
from core.times import moment
from instruments.facts import TEST_SYMBOL
from pages.documents.rendering import render_markdown
from pages.models import SiteText
from pages.terminal import ComingPast, terminal, watchlist
from pages.watchlist import WatchlistGroup, WatchlistRow, grouped
from signals_feed.ledger_days import position_now
from status.views import seen_now


# /pricing: what each tier allows, as staff have set it.
class Offer(NamedTuple):
    tier: Tier
    price: str
    is_yours: bool
    step: str
    """The text of the button that leads to it."""
    request: str
    """The form that asks for it."""


def offers(yours: Tier | None, wanted: Tier | None) -> list[Offer]:
    """`wanted` is the tier that was asked for, until staff have answered."""
    return [
        Offer(
            tier,
            tier.price or price_unsaid(tier),
            tier == yours,
            step_to(tier, yours, wanted),
            form_for(tier),
        )
        for tier in Tier.objects.all()
    ]


def step_to(tier: Tier, yours: Tier | None, wanted: Tier | None) -> str:
    if yours is None:
        return "Sign up" if tier.name == "free" else f"Sign up, then ask for {tier}"
    if tier == yours:
        return "See your usage"
    if tier == wanted:
        return "Requested: see your request"
    return f"Ask for {tier}" if tier.rank > yours.rank else f"Move down to {tier}"


def form_for(tier: Tier) -> str:
    return f"{reverse('tier')}?wanted={tier.name}"


def price_unsaid(tier: Tier) -> str:
    return "No charge" if tier.name == "free" else "On request"


@require_safe
def pricing(request: HttpRequest) -> HttpResponse:
    page = {"offers": offers(*tiers_of(request)), "limits": TIER_LIMITS}
    return render(request, "front/pricing.html", page)


def tiers_of(request: HttpRequest) -> tuple[Tier | None, Tier | None]:
    """A user's tier and the one that they asked for; strangers have none. A user without an
    account gets one on Free, as soon as it is needed."""
    if not request.user.is_authenticated:
        return None, None
    account = Account.objects.filter(user=request.user.pk).select_related("tier").first()
    if account is None:
        return Tier.objects.get(name="free"), None
    waiting = TierRequest.objects.filter(account=account).open().select_related("wanted").first()
    return account.tier, waiting.wanted if waiting else None


# /robots.txt: documents may be read by search engines, forms and data need not.
KEPT_OUT = ("/accounts/", "/admin/", "/api/", "/demo-login/", "/settings/", "/terminal")


@cache_control(max_age=86_400)
@require_safe
def robots(request: HttpRequest) -> HttpResponse:
    lines = ["User-agent: *", *(f"Disallow: {path}" for path in KEPT_OUT)]
    return HttpResponse("\n".join(lines) + "\n", content_type="text/plain; charset=utf-8")


# /.well-known/security.txt (RFC 9116). It may not outlive what it says, so it is made for a while only.
SECURITY_TEXT_DAYS = 30


@cache_control(max_age=86_400)
@require_safe
def security_text(request: HttpRequest) -> HttpResponse:
    if not settings.CONTACT_EMAIL:
        raise Http404
    expires = moment(machine_ms()) + timedelta(days=SECURITY_TEXT_DAYS)
    lines = (
        f"Contact: mailto:{settings.CONTACT_EMAIL}",
        f"Expires: {expires:%Y-%m-%dT%H:%M:%SZ}",
        "Preferred-Languages: en",
    )
    return HttpResponse("\n".join(lines) + "\n", content_type="text/plain; charset=utf-8")


# The first page: what the service is, and why to trust it.
MOST_ROWS = 8
LEAST_DAYS = 7


@never_cache
@require_safe
def start(request: HttpRequest, coming_past: ComingPast = lambda: None) -> HttpResponse:
    """In the demo, and for those who are logged in, the terminal itself."""
    if settings.DEMO or request.user.is_authenticated:
        return terminal(request, coming_past)
    return about(request)


@never_cache
@require_safe
def about(request: HttpRequest) -> HttpResponse:
    page = {
        "entries": position_now().position,
        "uptime": uptime_of_days(),
        "base": f"{request.scheme}://{request.get_host()}",
        "demo": settings.DEMO,
    }
    if settings.PUBLIC_TERMINAL or request.user.is_authenticated:
        page |= live(request, some_of(grouped(watchlist())))
    return render(request, "front/start.html", page)


def uptime_of_days() -> float | None:
    """None for a service that is too young for a figure in days."""
    seen = seen_now()
    return seen.uptime_percent if len(seen.days) > LEAST_DAYS else None


def some_of(groups: Iterable[WatchlistGroup]) -> list[WatchlistRow]:
    """What has a price, of each group in turn, so that the board shows what there is."""
    in_turn = zip_longest(*(group.rows for group in groups))
    shown = (row for row in chain.from_iterable(in_turn) if row and row.bid and row.symbol != TEST_SYMBOL)
    return sorted(list(shown)[:MOST_ROWS], key=lambda row: row.state == "closed")


def live(request: HttpRequest, rows: list[WatchlistRow]) -> dict[str, Any]:
    instruments = {
        row.symbol: {"name": row.facts.name, "digits": row.facts.digits, **row.drawn} for row in rows
    }
    config = {
        "csrf": get_token(request),
        "candlePrice": settings.CANDLE_PRICE,
        "instruments": instruments,
    }
    return {"rows": [on_board(row) for row in rows], "config": config}


def on_board(row: WatchlistRow) -> WatchlistRow:
    """In its short line: when a market opens, and not how long that is from now."""
    if row.drawn["opensMs"] is None:
        return row
    return row._replace(about=row.about.partition(", ")[0])


# /terms and /privacy: texts that staff edit in the back office.
FIRST_TEXTS = Path(__file__).parent / "first_texts"


def first_text(name: str) -> str:
    return (FIRST_TEXTS / f"{name}.md").read_text()


def write_first_texts(using: str, apps: Any, **_: Any) -> None:
    """Adds missing texts after migrations. Existing texts stay as they are."""
    try:
        texts = apps.get_model("pages", "SiteText")._default_manager.using(using)
    except LookupError:
        return
    for name in SiteText.Name.values:
        texts.get_or_create(name=name, defaults={"body": first_text(name)})


@require_safe
def site_text(request: HttpRequest, name: str) -> HttpResponse:
    text = get_object_or_404(SiteText, name=name)
    # Links in texts of staff may lead anywhere.
    shown = render_markdown(text.body, address=lambda link: link)
    return render(request, "front/text.html", {"text": text, "shown": shown})
