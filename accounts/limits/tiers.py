"""An account's tier: what it allows, requests for another, and decisions on them."""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from accounts.models import Account, RequestState, Tier, TierRequest
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent


@transaction.atomic
def change_tier(account: Account, tier: Tier, *, by: str) -> None:
    Account.objects.filter(pk=account.pk).update(tier=tier)
    ControlEvent.objects.publish(EventKind.ACCOUNT_CHANGED, by=by, account=account.pk, tier=tier.name)


@transaction.atomic
def save_tier(tier: Tier, *, by: str) -> None:
    tier.save()
    ControlEvent.objects.publish(EventKind.TIER_CHANGED, by=by, tier=tier.name)


@transaction.atomic
def save_user_access(account: Account, *, by: str) -> None:
    """After a user was locked or unlocked: their keys follow."""
    active = Account.objects.filter(pk=account.pk, user__is_active=True).exists()
    ControlEvent.objects.publish(EventKind.ACCOUNT_CHANGED, by=by, account=account.pk, active=active)


MOST_A_DAY = 5


class TierRequestRefused(Exception):
    """Why nothing was requested or decided, and what to do."""


@transaction.atomic
def ask_for_tier(account: Account, wanted: Tier, why: str, *, by: str) -> TierRequest:
    # The lock makes two presses of one button run one after the other.
    account = Account.objects.select_for_update(of=("self",)).select_related("tier").get(pk=account.pk)
    if account.tier == wanted:
        raise TierRequestRefused(f"You are on the {wanted} tier already.")
    if account.tier_requests.open().exists():
        raise TierRequestRefused("One request is waiting already. Withdraw it to send another.")
    day_ago = timezone.now() - timedelta(days=1)
    if account.tier_requests.filter(asked_at__gt=day_ago).count() >= MOST_A_DAY:
        raise TierRequestRefused(
            f"That would be more than {MOST_A_DAY} requests in a day. Ask again tomorrow."
        )
    request = TierRequest.objects.create(account=account, wanted=wanted, why=why)
    ControlEvent.objects.publish(EventKind.TIER_ASKED, by=by, account=account.pk, tier=wanted.name)
    return request


@transaction.atomic
def withdraw_request(request: TierRequest, *, by: str) -> None:
    _decide(request, TierRequest.State.WITHDRAWN, by=by)
    ControlEvent.objects.publish(EventKind.TIER_WITHDRAWN, by=by, account=request.account_id)


@transaction.atomic
def accept_request(request: TierRequest, *, by: str) -> None:
    _decide(request, TierRequest.State.ACCEPTED, by=by)
    change_tier(request.account, request.wanted, by=by)


@transaction.atomic
def decline_request(request: TierRequest, answer: str, *, by: str) -> None:
    _decide(request, TierRequest.State.DECLINED, by=by, answer=answer)
    ControlEvent.objects.publish(
        EventKind.TIER_DECLINED, by=by, account=request.account_id, tier=request.wanted.name, answer=answer
    )


def _decide(request: TierRequest, state: RequestState, *, by: str, answer: str = "") -> None:
    if not request.decide(state, by=by, answer=answer):
        raise TierRequestRefused("Another member of staff has already decided on this request.")
