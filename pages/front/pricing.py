"""/pricing: what each tier allows, as staff have set it."""

from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.models import TIER_LIMITS, Account, Tier


class Offer(NamedTuple):
    tier: Tier
    price: str
    is_yours: bool


def offers(yours: Tier | None) -> list[Offer]:
    return [Offer(tier, tier.price or price_unsaid(tier), tier == yours) for tier in Tier.objects.all()]


def price_unsaid(tier: Tier) -> str:
    return "No charge" if tier.name == "free" else "On request"


@require_safe
def pricing(request: HttpRequest) -> HttpResponse:
    account = Account.objects.filter(user=request.user.pk).select_related("tier").first()
    yours = account.tier if account else None
    page = {"offers": offers(yours), "limits": TIER_LIMITS, "has_account": request.user.is_authenticated}
    return render(request, "front/pricing.html", page)
