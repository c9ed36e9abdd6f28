"""Becoming a publisher: asking staff for it, and what becomes of that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.db import models, transaction
from django.utils import timezone

from accounts.models import Account, RequestState, StaffRequest, User, request_constraints
from accounts.rights import MAY_PUBLISH, publishing_right
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent


class PublisherRequest(StaffRequest):
    account = models.ForeignKey(
        "accounts.Account", on_delete=models.CASCADE, db_constraint=False, related_name="publisher_requests"
    )
    # No text, so that an account that is deleted leaves no name behind.
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        db_constraint=False,
        related_name="+",
    )

    class Meta(StaffRequest.Meta):
        constraints = request_constraints("publisher_request")

    def __str__(self) -> str:
        return f"Request of {self.account} to publish signals"


MOST_A_DAY = 5


REQUESTED = ("why", "state", "asked_at", "decided_at", "answer")


def own_requests(user: User) -> Iterable[Mapping[str, object]]:
    rows: Iterable[Mapping[str, object]] = (
        PublisherRequest.objects.filter(account__user=user).order_by("pk").values(*REQUESTED)
    )
    return rows


def own_decisions(user: User) -> Iterable[Mapping[str, object]]:
    """Without whose requests they were, and the answers, which are theirs."""
    decided = PublisherRequest.objects.filter(decided_by=user).exclude(account__user=user).order_by("pk")
    rows: Iterable[Mapping[str, object]] = decided.values("state", "decided_at")
    return rows


DECIDED = (EventKind.PUBLISHING_ACCEPTED, EventKind.PUBLISHING_GRANTED, EventKind.PUBLISHING_REVOKED)


def withdrawn_at(account: Account) -> datetime | None:
    """When staff withdrew the right to publish, unless it was given back since."""
    decided = ControlEvent.objects.filter(account_id=account.pk, kind__in=DECIDED)
    last = decided.order_by("-position").first()
    return last.created_at if last is not None and last.kind == EventKind.PUBLISHING_REVOKED else None


class PublisherRequestRefused(Exception):
    """Nothing was asked or decided; says why, and what to do."""


@transaction.atomic
def ask_to_publish(account: Account, why: str, *, by: User) -> PublisherRequest:
    # Locking the account makes two presses of one button come one after the other.
    account = Account.objects.select_for_update(of=("self",)).get(pk=account.pk)
    own = PublisherRequest.objects.filter(account=account)
    if by.has_perm(MAY_PUBLISH):
        raise PublisherRequestRefused("You may publish signals already.")
    if own.open().exists():
        raise PublisherRequestRefused("Your request is with the staff already.")
    if own.filter(asked_at__gt=timezone.now() - timedelta(days=1)).count() >= MOST_A_DAY:
        raise PublisherRequestRefused(f"{MOST_A_DAY} requests a day are the most. Ask again tomorrow.")
    request = PublisherRequest.objects.create(account=account, why=why)
    ControlEvent.objects.publish(EventKind.PUBLISHING_ASKED, by=by.get_username(), account=account.pk)
    return request


@transaction.atomic
def withdraw_request(request: PublisherRequest, *, by: User) -> None:
    _decide(request, PublisherRequest.State.WITHDRAWN, by=by)
    ControlEvent.objects.publish(
        EventKind.PUBLISHING_WITHDRAWN, by=by.get_username(), account=request.account_id
    )


@transaction.atomic
def accept_request(request: PublisherRequest, *, by: User) -> None:
    _decide(request, PublisherRequest.State.ACCEPTED, by=by)
    publishing_right.set_for(request.account.user, is_held=True)
    ControlEvent.objects.publish(
        EventKind.PUBLISHING_ACCEPTED, by=by.get_username(), account=request.account_id
    )


@transaction.atomic
def decline_request(request: PublisherRequest, answer: str, *, by: User) -> None:
    _decide(request, PublisherRequest.State.DECLINED, by=by, answer=answer)
    # The answer stands in the request alone, which goes with the account.
    ControlEvent.objects.publish(
        EventKind.PUBLISHING_DECLINED, by=by.get_username(), account=request.account_id
    )


def _decide(request: PublisherRequest, state: RequestState, *, by: User, answer: str = "") -> None:
    if not request.decide(state, by=by, answer=answer):
        raise PublisherRequestRefused("This request has already been decided.")
