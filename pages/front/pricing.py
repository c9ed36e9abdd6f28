"""/pricing: what each tier allows, as staff have set it."""

from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from accounts.models import TIER_LIMITS, Account, Tier, TierRequest


class Offer(NamedTuple):
    tier: Tier
    price: str
    is_yours: bool
    step: str
    """What leads to it: words for a button."""
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
    """The tier that somebody has and the one that they asked for; strangers have none. A user without an
    account gets one on Free, as soon as it is needed."""
    if not request.user.is_authenticated:
        return None, None
    account = Account.objects.filter(user=request.user.pk).select_related("tier").first()
    if account is None:
        return Tier.objects.get(name="free"), None
    waiting = TierRequest.objects.filter(account=account).open().select_related("wanted").first()
    return account.tier, waiting.wanted if waiting else None
