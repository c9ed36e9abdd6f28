"""/ws/news: each item as it enters the feed, once, and what came while a client was away."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from instruments.models import Instrument
from news.entering import enter_feed
from news.models import NewsAnnouncement, NewsItem
from news.newsroom.decisions import override_score, publish, reject, take_back
from news.stream import news
from tests.client import Api, Server
from tests.contract.answers import MILLISECONDS
from tests.contract.conftest import forget_redis
from tests.contract.streams.client import Frame, Socket, code_of
from tests.contract.streams.conftest import Open, make_server
from tests.contract.streams.publishing import make_draft, publish_news
from tests.factories import make_account, make_key, make_tier

pytestmark = pytest.mark.services

NEWS = "/ws/news"
ITEM = {"title", "category", "sentiment", "sentiment_score", "timestamp", "id", "time"}
CATEGORIES = ["forex", "gold", "crypto", "macro"]


@pytest.fixture
def told(service: Server) -> Callable[..., str]:
    """Published, and the service has sent it: who subscribes then does not hear it as new."""

    def new(*symbols: str, **fields: Any) -> str:
        pk = publish_news(*symbols, **fields)
        service.run(news.send_new())
        return pk

    return new


def heard_ids(socket: Any, count: int) -> list[str]:
    return [str(each) for each in socket.hear_of(count, "id")]


# What is pushed.
def test_frame_is_the_item_of_the_feed_with_id_and_time(
    opened: Open, key: str, symbol: str, shared: Api
) -> None:
    socket = opened(NEWS, key=key)
    socket.subscribe(symbol)
    publish_news(symbol, title="Euro firms", sentiment_score=0.25, published_at=timezone.now())
    heard = socket.hear()
    assert set(heard) == ITEM
    assert MILLISECONDS.fullmatch(heard["timestamp"])
    assert (type(heard["id"]), type(heard["time"])) == (int, int)
    [rest] = [
        item
        for item in shared.ask("/api/news?expand=id&limit=500").json()["items"]
        if item["id"] == heard["id"]
    ]
    assert {name: value for name, value in heard.items() if name != "time"} == rest


def test_time_is_that_of_the_timestamp(opened: Open, key: str, symbol: str) -> None:
    socket = opened(NEWS, key=key)
    socket.subscribe(symbol)
    moment = timezone.now().replace(microsecond=118_999) - timedelta(hours=5)
    publish_news(symbol, published_at=moment)
    heard = socket.hear()
    assert heard["timestamp"].endswith(".118Z")
    assert heard["time"] == int(moment.timestamp()) * 1000 + 118


def test_lag_adds_when_it_was_sent(opened: Open, key: str, symbol: str) -> None:
    socket = opened(NEWS, key=key)
    socket.subscribe(symbol, features=["lag", "seq"])
    publish_news(symbol)
    assert set(socket.hear()) == ITEM | {"sent"}


def test_item_is_told_once_whatever_becomes_of_it(opened: Open, key: str, symbol: str) -> None:
    socket = opened(NEWS, key=key)
    socket.subscribe(symbol)
    item = make_draft(symbol)
    publish(item, by="curator")
    assert socket.hear()["id"] == item.pk
    override_score(item, -0.9, by="boss")
    take_back(item)
    publish(item, by="curator")
    last = publish_news(symbol)
    assert heard_ids(socket, 1) == [last]


def test_draft_that_is_scored_or_rejected_is_not_told(opened: Open, key: str, symbol: str) -> None:
    socket = opened(NEWS, key=key)
    socket.subscribe(symbol)
    override_score(make_draft(symbol), 0.5, by="boss")
    reject(make_draft(symbol))
    last = publish_news(symbol)
    assert heard_ids(socket, 1) == [last]


# What is subscribed.
def test_without_symbols_and_categories_it_is_all(opened: Open, key: str) -> None:
    socket = opened(NEWS, key=key)
    reply = socket.subscribe(id=7)
    assert reply.pop("since").startswith("after:")
    assert reply == {
        "type": "subscribed",
        "stream": "news",
        "symbols": ["*"],
        "categories": CATEGORIES,
        "rejected": [],
        "id": 7,
    }
    pks = [publish_news(category=name) for name in CATEGORIES]
    assert heard_ids(socket, 4) == pks


def test_symbols_choose_what_is_about_one_of_them(opened: Open, key: str, symbol: str) -> None:
    socket = opened(NEWS, key=key)
    assert socket.subscribe(symbol.lower(), "NOPE")["rejected"] == [
        {"symbol": "NOPE", "code": "symbol_not_found"}
    ]
    publish_news()
    last = publish_news(symbol)
    assert heard_ids(socket, 1) == [last]


def test_item_about_two_subscribed_symbols_comes_once(opened: Open, key: str, symbol: str) -> None:
    other = Instrument.objects.exclude(symbol=symbol).values_list("symbol", flat=True)[0]
    socket = opened(NEWS, key=key)
    socket.subscribe(symbol, other)
    pks = [publish_news(symbol, other), publish_news(other)]
    assert heard_ids(socket, 2) == pks


def test_categories_choose_and_both_must_match(opened: Open, key: str, symbol: str) -> None:
    socket = opened(NEWS, key=key)
    reply = socket.subscribe(symbol, categories=["macro", "gold"])
    assert (reply["symbols"], reply["categories"]) == ([symbol], ["gold", "macro"])
    publish_news(symbol, category="forex")
    publish_news(category="gold")
    last = publish_news(symbol, category="gold")
    assert heard_ids(socket, 1) == [last]


def test_categories_add_up_as_symbols_do(opened: Open, key: str, symbol: str) -> None:
    socket = opened(NEWS, key=key)
    socket.subscribe(symbol, categories=["gold"])
    assert socket.subscribe(symbol, categories=["crypto"])["categories"] == ["gold", "crypto"]
    assert socket.ask({"action": "list"})["categories"] == ["gold", "crypto"]
    assert socket.subscribe(symbol)["categories"] == CATEGORIES


def test_who_left_all_begins_anew(opened: Open, key: str, symbol: str) -> None:
    socket = opened(NEWS, key=key)
    socket.subscribe(symbol)
    assert socket.ask({"action": "unsubscribe"}) == {"type": "unsubscribed", "symbols": [], "categories": []}
    publish_news(symbol)
    assert socket.subscribe(symbol, categories=["gold"])["categories"] == ["gold"]
    publish_news(symbol, category="forex")
    last = publish_news(symbol, category="gold")
    assert heard_ids(socket, 1) == [last]


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        (NEWS, "categories", []),
        (NEWS, "categories", ["stocks"]),
        (NEWS, "categories", "gold"),
        (NEWS, "events", ["signal.closed"]),
        (NEWS, "resume", {"epoch": "e", "positions": {}}),
        (NEWS, "since", 5),
        ("/ws/signals", "categories", ["gold"]),
        ("/ws/market", "categories", ["gold"]),
        ("/ws/market", "since", "5"),
    ],
)
def test_what_would_have_no_effect_is_refused(
    opened: Open, key: str, symbol: str, path: str, field: str, value: Any
) -> None:
    socket = opened(path, key=key)
    refused = socket.refused({"action": "subscribe", "symbols": [symbol], field: value})
    assert code_of(refused) == ("invalid_message", False, False)
    assert refused["error"]["field"] == field


def test_wrong_category_is_told_which_there_are(opened: Open, key: str) -> None:
    refused = opened(NEWS, key=key).refused({"action": "subscribe", "categories": ["stocks"]})
    assert refused["error"]["allowed"] == CATEGORIES


# What came meanwhile.
def test_since_brings_what_was_announced_after_it(
    opened: Open, key: str, symbol: str, told: Callable[..., str]
) -> None:
    first = told(symbol)
    missed = [told(symbol), told(symbol)]
    socket = opened(NEWS, key=key)
    reply = socket.subscribe(symbol, since=first)
    assert (reply["recovered"], "unrecovered" in reply) == (True, False)
    last = publish_news(symbol)
    assert heard_ids(socket, 3) == [*missed, last]


def test_place_of_a_reply_brings_what_came_before_the_first_item_was_heard(
    opened: Open, key: str, symbol: str
) -> None:
    place = opened(NEWS, key=key).subscribe(symbol)["since"]
    missed = publish_news(symbol)
    socket = opened(NEWS, key=key)
    assert socket.subscribe(symbol, since=place)["recovered"] is True
    assert heard_ids(socket, 1) == [missed]


def test_missed_items_come_in_the_order_of_their_announcement_and_as_they_are_now(
    opened: Open, key: str, symbol: str, told: Callable[..., str]
) -> None:
    first = told(symbol)
    older = make_draft(symbol, published_at=timezone.now() - timedelta(days=3))
    newer = told(symbol, published_at=timezone.now())
    publish(older, by="curator")
    override_score(older, -0.5, by="boss")
    socket = opened(NEWS, key=key)
    socket.subscribe(symbol, since=first)
    heard = [socket.hear(), socket.hear()]
    assert [str(each["id"]) for each in heard] == [newer, str(older.pk)]
    assert (heard[1]["sentiment"], heard[1]["sentiment_score"]) == ("bearish", -0.5)


def test_what_staff_took_back_is_not_replayed(
    opened: Open, key: str, symbol: str, told: Callable[..., str]
) -> None:
    first, withdrawn, later = told(symbol), told(symbol), told(symbol)
    take_back(NewsItem.objects.get(pk=withdrawn))
    socket = opened(NEWS, key=key)
    assert socket.subscribe(symbol, since=first)["recovered"] is True
    assert heard_ids(socket, 1) == [later]


def test_place_of_an_item_that_was_taken_back_holds(
    opened: Open, key: str, symbol: str, told: Callable[..., str]
) -> None:
    withdrawn, later = told(symbol), told(symbol)
    reject(NewsItem.objects.get(pk=withdrawn))
    socket = opened(NEWS, key=key)
    assert socket.subscribe(symbol, since=withdrawn)["recovered"] is True
    assert heard_ids(socket, 1) == [later]


def test_replay_has_only_what_is_subscribed(
    opened: Open, key: str, symbol: str, told: Callable[..., str]
) -> None:
    first = told(symbol)
    told(symbol, category="crypto")
    told(category="gold")
    wanted = told(symbol, category="gold")
    socket = opened(NEWS, key=key)
    socket.subscribe(symbol, since=first, categories=["gold"])
    assert heard_ids(socket, 1) == [wanted]


def test_category_that_joins_with_since_brings_only_its_own(
    opened: Open, key: str, symbol: str, told: Callable[..., str]
) -> None:
    first = told(symbol)
    socket = opened(NEWS, key=key)
    socket.subscribe(symbol, categories=["gold"])
    heard = told(symbol, category="gold")
    missed = told(symbol, category="crypto")
    assert heard_ids(socket, 1) == [heard]
    socket.subscribe(symbol, since=first, categories=["crypto"])
    assert heard_ids(socket, 1) == [missed]


@pytest.mark.parametrize("since", ["", "none", "٣", "999999999999", "after:", "after:x", "closed:5", "-1"])
def test_unknown_place_goes_on_from_now_and_says_so(
    opened: Open, key: str, symbol: str, since: str, told: Callable[..., str]
) -> None:
    told(symbol)
    socket = opened(NEWS, key=key)
    reply = socket.subscribe(symbol, since=since)
    assert (reply["recovered"], reply["unrecovered"]) == (False, [symbol])
    last = publish_news(symbol)
    assert heard_ids(socket, 1) == [last]


@pytest.mark.parametrize(("days", "recovered"), [(6.9, True), (7.1, False)])
def test_items_are_replayed_for_seven_days_from_their_announcement(
    opened: Open, key: str, symbol: str, days: float, recovered: bool, told: Callable[..., str]
) -> None:
    place = opened(NEWS, key=key).subscribe(symbol)["since"]
    first = told(symbol, published_at=timezone.now() - timedelta(days=30))
    then = timezone.now() - timedelta(days=days)
    NewsAnnouncement.objects.filter(item=int(first)).update(announced_at=then)
    told(symbol)
    for since in (first, place):
        assert opened(NEWS, key=key).subscribe(symbol, since=since)["recovered"] is recovered


def test_more_than_a_portion_is_replayed_whole(opened: Open, key: str, symbol: str) -> None:
    first = publish_news(symbol)
    instrument = Instrument.objects.get(symbol=symbol)
    items = NewsItem.objects.bulk_create(
        NewsItem(title=f"n {number}", category="gold", status="published", sentiment_score=0, model="m")
        for number in range(1_010)
    )
    through = NewsItem.symbols.through
    through.objects.bulk_create(through(newsitem_id=item.pk, instrument_id=instrument.pk) for item in items)
    in_one_transaction(items)
    socket = opened(NEWS, key=key)
    socket.subscribe(symbol, since=first)
    assert heard_ids(socket, 1_010) == [str(item.pk) for item in items]
    assert socket.is_open


def in_one_transaction(items: list[NewsItem]) -> None:
    with transaction.atomic():
        enter_feed(items, timezone.now())


def test_client_that_is_cut_off_again_and_again_hears_each_item_once(
    opened: Open, key: str, symbol: str
) -> None:
    """While two writers publish."""
    dice = random.Random(7)  # noqa: S311 - the same cuts in each run
    each, heard = 60, [publish_news(symbol)]

    def work() -> None:
        for _ in range(each):
            publish_news(symbol)
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    while len(heard) <= 2 * each:
        socket = opened(NEWS, key=key)
        assert socket.subscribe(symbol, since=heard[-1], takeover=True)["recovered"] is True
        heard += heard_ids(socket, min(dice.randrange(25), 2 * each + 1 - len(heard)))
        # Without a word, and with others under way.
        socket.connection.socket.close()
    for thread in threads:
        thread.join()
    in_order = NewsAnnouncement.objects.filter(item__symbols__symbol=symbol).order_by("position")
    assert heard == [str(pk) for pk in in_order.values_list("item_id", flat=True)]


def test_news_count_as_a_stream(opened: Open, key: str, shared_limits: Callable[[], Frame]) -> None:
    opened(NEWS, key=key).subscribe()
    assert [each["path"] for each in shared_limits()["streams"]["open"]] == [NEWS]


@pytest.fixture
def shared_limits(shared: Api, key: str) -> Callable[[], Frame]:
    return lambda: dict(shared.ask("/api/limits", key=key).json())


def test_what_was_published_between_two_runs_of_the_service_is_replayed(transactional_db: None) -> None:
    key = make_key(make_account(tier=make_tier("roomy")))
    forget_redis()
    with make_server() as first_run, Socket(first_run, NEWS, key=key) as socket:
        place = socket.subscribe()["since"]
        heard = publish_news()
        assert heard_ids(socket, 1) == [heard]
    missed = [publish_news(), publish_news()]
    forget_redis()
    with make_server() as second_run:
        for since, due in ((heard, missed), (place, [heard, *missed])):
            with Socket(second_run, NEWS, key=key) as socket:
                assert socket.subscribe(since=since, takeover=True)["recovered"] is True
                assert heard_ids(socket, len(due)) == due
