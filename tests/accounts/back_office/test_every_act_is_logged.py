"""Whatever staff do to tiers, keys and news stands in the log with who did it. What can be done is taken from
the registry, so that a new button, action or page fails here until it is walked through, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db.models import Model
from django.test import RequestFactory

from accounts.models import Account, ApiKey, Tier, TierRequest
from market.models import IngestKey
from market.push.keys import issue_ingest_key
from news.models import NewsCategory, NewsItem, Source
from signals_feed.publishers.requests import PublisherRequest
from tests.factories import make_account, make_instrument, make_key, make_news, make_user
from tests.news.ingest.made_feeds import make_source

from .office import Office, add_to, address, change

pytestmark = [pytest.mark.django_db, pytest.mark.services]
MODELS = (Tier, Account, TierRequest, PublisherRequest, ApiKey, IngestKey, NewsItem, Source)
QUEUE = "/admin/news/queue/"
LIMITS = {"rank": "7", "requests_per_minute": "90", "streams": "3", "ai_calls_per_day": "7"}
ITEM = {
    "title": "Gold rests",
    "category": "gold",
    "published_at_0": "2026-11-18",
    "published_at_1": "12:00:00",
    "sentiment_score": "-0.3",
}
SOURCE = {
    "name": "Other Wire",
    "address": "https://other-wire.example/rss",
    "language": "en",
    "trust": "review",
    "is_active": "on",
    "interval_s": "300",
}


class Act(NamedTuple):
    """What is done, to which row; where it is a new one, the row does not say yet which."""

    make: Callable[[], Model]
    do: Callable[[Office, Any], object]


def tier() -> Tier:
    return Tier.objects.get(name="free")


def request() -> TierRequest:
    return TierRequest.objects.create(
        account=make_account(), wanted=Tier.objects.get(name="pro"), why="A bot."
    )


def publisher_request() -> PublisherRequest:
    return PublisherRequest.objects.create(account=make_account(), why="Gold, by hand.")


def key() -> ApiKey:
    make_key()
    return ApiKey.objects.latest("pk")


def ingest_key() -> IngestKey:
    make_instrument("EURUSD")
    return issue_ingest_key("desk", by="test")[0]


def draft() -> NewsItem:
    return make_news(status="draft")


def added(**fields: Any) -> Callable[[Office, Model], object]:
    return lambda office, row: office.client.post(add_to(row), fields)


def changed(**fields: Any) -> Callable[[Office, Model], object]:
    return lambda office, row: office.client.post(change(row), fields)


def on_page(name: str, **fields: Any) -> Callable[[Office, Model], object]:
    return lambda office, row: office.post(address(row, name, row.pk), answered="1", post="yes", **fields)


def chosen(action: str) -> Callable[[Office, Model], object]:
    return lambda office, row: office.answer(action, row, post="yes")


def queued(act: str, **fields: Any) -> Callable[[Office, NewsItem], object]:
    return lambda office, item: office.post(QUEUE, act=act, item=f"{item.pk}:{item.mark}", **fields)


def open_account(office: Office, account: Account) -> None:
    office.post(add_to(Account), user=make_user().pk, tier=account.tier.pk)


def issue(office: Office, row: ApiKey) -> None:
    office.post(add_to(ApiKey), account=row.account.pk, name="laptop", answered="1")


def change_tier(office: Office, account: Account) -> None:
    office.post(change(account), tier=Tier.objects.get(name="premium").pk)


ACTS: dict[tuple[type[Model], str], Act] = {
    (Tier, "add"): Act(tier, added(name="gold", **LIMITS)),
    (Tier, "change"): Act(tier, changed(**LIMITS)),
    (Account, "add"): Act(make_account, open_account),
    (Account, "change"): Act(make_account, change_tier),
    (TierRequest, "accept"): Act(request, on_page("accept")),
    (TierRequest, "decline"): Act(request, on_page("decline", answer="No.")),
    (PublisherRequest, "accept"): Act(publisher_request, on_page("accept")),
    (PublisherRequest, "decline"): Act(publisher_request, on_page("decline", answer="No.")),
    (ApiKey, "add"): Act(key, issue),
    (ApiKey, "change"): Act(key, changed(name="renamed")),
    (ApiKey, "roll"): Act(key, on_page("roll", overlap_hours="1")),
    (ApiKey, "revoke"): Act(key, on_page("revoke")),
    (ApiKey, "revoke_chosen"): Act(key, chosen("revoke_chosen")),
    (IngestKey, "add"): Act(ingest_key, added(name="other", symbols="", answered="1")),
    (IngestKey, "change"): Act(ingest_key, changed(symbols="EURUSD")),
    (IngestKey, "revoke"): Act(ingest_key, on_page("revoke")),
    (IngestKey, "revoke_chosen"): Act(ingest_key, chosen("revoke_chosen")),
    (NewsItem, "add"): Act(draft, added(**ITEM)),
    (NewsItem, "change"): Act(draft, changed(**ITEM)),
    (NewsItem, "delete"): Act(draft, on_page("delete")),
    (NewsItem, "delete_selected"): Act(draft, chosen("delete_selected")),
    (NewsItem, "publish_chosen"): Act(draft, chosen("publish_chosen")),
    (NewsItem, "reject_chosen"): Act(draft, chosen("reject_chosen")),
    (NewsItem, "take_back_chosen"): Act(make_news, chosen("take_back_chosen")),
    (NewsItem, "score_again_chosen"): Act(draft, chosen("score_again_chosen")),
    (NewsItem, "replace_score_of_chosen"): Act(make_news, chosen("replace_score_of_chosen")),
    (NewsItem, "queue publish"): Act(draft, queued("publish")),
    (NewsItem, "queue reject"): Act(draft, queued("reject")),
    (NewsItem, "queue score"): Act(draft, queued("score", score="0.7")),
    **{
        (NewsItem, f"queue category:{name}"): Act(draft, queued(f"category:{name}"))
        for name in NewsCategory.values
    },
    (Source, "add"): Act(make_source, added(**SOURCE)),
    (Source, "change"): Act(make_source, changed(**SOURCE)),
    (Source, "delete"): Act(make_source, on_page("delete")),
    (Source, "delete_selected"): Act(make_source, chosen("delete_selected")),
    (Source, "poll_chosen"): Act(make_source, chosen("poll_chosen")),
    (Source, "pause_chosen"): Act(make_source, chosen("pause_chosen")),
    (Source, "resume_chosen"): Act(make_source, chosen("resume_chosen")),
}

# The same again: a draft that is scored, asked or resumed as it was.
UNCHANGED = {"resume_chosen", "score_again_chosen", "queue category:forex"}
LOOKED_AT = {"changelist", "history", "autocomplete"}


def possible(model: type[Model], asking: Any) -> set[str]:
    """What a superuser can do on the pages of a model, by its URLs and the list's actions."""
    pages: Any = admin.site._registry[model]
    may = {
        "add": pages.has_add_permission(asking),
        "change": pages.has_change_permission(asking) and model not in (TierRequest, PublisherRequest),
        "delete": pages.has_delete_permission(asking),
    }
    stem = f"{model._meta.app_label}_{model._meta.model_name}_"
    urls = {url.name.removeprefix(stem) for url in pages.get_urls() if url.name}
    acts = {name for name in urls - LOOKED_AT if may.get(name, True)}
    return acts | set(pages.get_actions(asking))


@pytest.fixture
def asking(office: Office) -> Any:
    asking: Any = RequestFactory().get("/")
    asking.user = office.user
    return asking


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_all_that_can_be_done_is_walked_through(asking: Any, model: type[Model]) -> None:
    walked = {name for kind, name in ACTS if kind is model and not name.startswith("queue ")}
    assert walked == possible(model, asking)


def test_all_buttons_of_the_queue_are_walked_through(office: Office) -> None:
    draft()
    page = office.get(QUEUE).content.decode()
    offered = {part.partition('"')[0] for part in page.split('name="act" value="')[1:]}
    assert offered == {name.removeprefix("queue ") for _, name in ACTS if name.startswith("queue ")}


@pytest.mark.parametrize(("model", "name"), ACTS, ids=lambda part: getattr(part, "__name__", part))
def test_it_is_logged_with_its_actor(office: Office, model: type[Model], name: str) -> None:
    make, do = ACTS[model, name]
    row = make()
    before = list(model._default_manager.order_by("pk").values())
    assert not LogEntry.objects.exists()

    do(office, row)

    assert list(model._default_manager.order_by("pk").values()) != before or name in UNCHANGED
    told = LogEntry.objects.filter(content_type__model=model._meta.model_name)
    assert [entry.user for entry in told] == [office.user] * len(told)
    assert any(name.startswith(("add", "roll")) or entry.object_id == str(row.pk) for entry in told)
    assert all(entry.get_change_message() or entry.is_deletion() for entry in told)
