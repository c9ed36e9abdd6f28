"""/ws/signals and /ws/news: each once, as it enters the feed, and what came while a client was away."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from django.db import connection, transaction
from django.utils import timezone

from instruments.models import Instrument
from market.streams.announced_stream import AnnouncedStream
from news.models import NewsAnnouncement, NewsItem
from news.newsroom import override_score, publish, reject, take_back
from news.stream import news
from signals_feed.models import Announcement, Signal
from signals_feed.stream import signals
from tests.client import Api, Server
from tests.contract.answers import MILLISECONDS
from tests.contract.conftest import forget_redis
from tests.contract.streams.client import Frame, Socket, code_of
from tests.contract.streams.conftest import Open, make_server
from tests.contract.streams.publishing import make_draft, publish_news
from tests.databases.queries import around_statements
from tests.factories import make_account, make_instrument, make_key, make_tier
from tests.signals_feed.announcing import AWAY
from tests.signals_feed.published_signals import close_at, make_published

pytestmark = pytest.mark.services

NEWS, SIGNALS = "/ws/news", "/ws/signals"
CATEGORIES = ["forex", "gold", "crypto", "macro"]
CLOSURES = {"events": ["signal.closed"]}
RESULT = {"pnl", "pnl_percent", "pnl_r", "close_price", "closed_at", "close_reason"}
Publish = Callable[..., str]


def new_signal(symbol: str, **terms: Any) -> str:
    return str(make_published(Instrument.objects.get(symbol=symbol), **terms).pk)


class Feed(NamedTuple):
    """What holds for both."""

    path: str
    stream: AnnouncedStream
    publish: Publish
    in_order: Callable[[str], list[Any]]
    """All of an instrument, in the order of their announcement."""


def signals_in_order(symbol: str) -> list[Any]:
    of_symbol = Announcement.objects.filter(signal__instrument__symbol=symbol).order_by("position")
    return list(of_symbol.values_list("signal_id", flat=True))


def news_in_order(symbol: str) -> list[Any]:
    of_symbol = NewsAnnouncement.objects.filter(item__symbols__symbol=symbol).order_by("position")
    return list(of_symbol.values_list("item_id", flat=True))


FEEDS = {
    "signals": Feed(SIGNALS, signals, new_signal, signals_in_order),
    "news": Feed(NEWS, news, publish_news, news_in_order),
}


@pytest.fixture(params=FEEDS.values(), ids=list(FEEDS))
def feed(request: pytest.FixtureRequest, service: Server) -> Feed:
    chosen: Feed = request.param
    return chosen


@pytest.fixture
def told(service: Server) -> Publish:
    """Published on a feed, and the service has sent it: who subscribes then does not hear it as new."""

    def new(feed: Feed, *symbols: str, **fields: Any) -> str:
        pk = feed.publish(*symbols, **fields)
        service.run(feed.stream.send_new())
        return pk

    return new


def heard_ids(socket: Socket, count: int) -> list[str]:
    return [str(each) for each in socket.hear_of(count, "id")]


# What both push.
def test_time_is_that_of_the_timestamp_and_lag_adds_when_it_was_sent(
    opened: Open, key: str, symbol: str, feed: Feed
) -> None:
    plain, lagging = opened(feed.path, key=key), opened(feed.path, key=key)
    plain.subscribe(symbol)
    assert not {"epoch", "positions"} & lagging.subscribe(symbol, features=["lag", "seq"]).keys()
    moment = timezone.now().replace(microsecond=118_999)
    feed.publish(symbol, published_at=moment)
    heard = plain.hear()
    assert MILLISECONDS.fullmatch(heard["timestamp"])
    assert heard["timestamp"].endswith(".118Z")
    assert heard["time"] == int(moment.timestamp()) * 1000 + 118
    assert lagging.hear().keys() == heard.keys() | {"sent"}


@pytest.mark.parametrize("named", [{}, {"symbols": ["*"]}])
def test_without_symbols_it_is_all(
    opened: Open, key: str, symbol: str, feed: Feed, named: dict[str, list[str]]
) -> None:
    socket = opened(feed.path, key=key)
    reply = socket.ask({"action": "subscribe", **named, "id": 7})
    assert reply.pop("since").startswith("after:")
    name = feed.path.rpartition("/")[2]
    shown = {"categories": CATEGORIES} if feed.path == NEWS else {}
    assert reply == {
        "type": "subscribed",
        "stream": name,
        "symbols": ["*"],
        "rejected": [],
        "id": 7,
        **shown,
    }
    published = feed.publish(symbol)
    assert heard_ids(socket, 1) == [published]


def test_all_besides_a_symbol_brings_each_once_and_other_symbols_bring_nothing(
    opened: Open, key: str, symbol: str, feed: Feed
) -> None:
    other = make_instrument(f"OTHER{symbol}").symbol
    both, one = opened(feed.path, key=key), opened(feed.path, key=key)
    both.subscribe(symbol)
    assert both.subscribe()["symbols"] == ["*"]
    reply = one.subscribe(symbol.lower(), "NOSUCH")
    assert (reply["symbols"], reply["rejected"]) == (
        [symbol],
        [{"symbol": "NOSUCH", "code": "symbol_not_found"}],
    )
    published = [feed.publish(name) for name in (other, symbol, other)]
    assert heard_ids(both, 3) == published
    assert heard_ids(one, 1) == published[1:2]
    assert both.is_open
    assert one.is_open


def test_nothing_comes_of_what_was_left(opened: Open, key: str, symbol: str, feed: Feed) -> None:
    other = make_instrument(f"KEPT{symbol}").symbol
    socket = opened(feed.path, key=key)
    socket.subscribe(symbol, other)
    assert socket.ask({"action": "unsubscribe", "symbols": [symbol]})["symbols"] == [other]
    assert socket.ask({"action": "list"})["symbols"] == [other]
    feed.publish(symbol)
    kept = feed.publish(other)
    assert heard_ids(socket, 1) == [kept]


# Coming back.
def test_since_brings_what_was_announced_after_it_and_then_the_new(
    opened: Open, key: str, symbol: str, feed: Feed, told: Publish
) -> None:
    other = make_instrument(f"SINCE{symbol}").symbol
    first = told(feed, other)
    missed = [told(feed, symbol) for _ in range(2)]
    told(feed, other)
    socket, again = opened(feed.path, key=key), opened(feed.path, key=key)
    reply = socket.subscribe(symbol, since=first, id="back")
    assert (reply["recovered"], "unrecovered" in reply, reply["id"]) == (True, False, "back")
    assert heard_ids(socket, 2) == missed
    # It is of its own message.
    assert "recovered" not in socket.subscribe(other)
    # Who missed nothing gets nothing twice.
    assert again.subscribe(symbol, since=missed[-1])["recovered"] is True
    new = feed.publish(symbol)
    assert (heard_ids(socket, 1), heard_ids(again, 1)) == ([new], [new])
    assert socket.is_open


def test_place_of_a_reply_brings_what_came_before_the_first_was_heard(
    opened: Open, key: str, symbol: str, feed: Feed
) -> None:
    place = opened(feed.path, key=key).subscribe(symbol)["since"]
    missed = feed.publish(symbol)
    socket = opened(feed.path, key=key)
    reply = socket.subscribe(symbol, since=place)
    assert (reply["recovered"], reply["since"]) == (True, place)
    assert heard_ids(socket, 1) == [missed]
    assert opened(feed.path, key=key).subscribe(symbol)["since"] != place


UNKNOWN = [
    *("", "nonsense", "٣", "999999999999", "-1", "6f1c2f5e-8f0b-4a53-9d0e-2b8f6f6f9a01", "closed:5"),
    *("after:", "after:x", "after:-1", "after:٣", "after:1e3", "after:" + "9" * 18),
]


@pytest.mark.parametrize("since", UNKNOWN)
def test_unknown_place_goes_on_from_now_and_says_so(
    opened: Open, key: str, symbol: str, feed: Feed, told: Publish, since: str
) -> None:
    told(feed, symbol)
    socket = opened(feed.path, key=key)
    reply = socket.subscribe(symbol, since=since)
    assert (reply["recovered"], reply["unrecovered"]) == (False, [symbol])
    last = feed.publish(symbol)
    assert heard_ids(socket, 1) == [last]


@pytest.mark.parametrize(("days", "recovered"), [(6.9, True), (7.1, False)])
def test_place_holds_for_seven_days_from_the_announcement(
    opened: Open, key: str, symbol: str, feed: Feed, told: Publish, days: float, recovered: bool
) -> None:
    place = opened(feed.path, key=key).subscribe(symbol)["since"]
    then = timezone.now() - timedelta(days=days)
    if feed.path == NEWS:
        first = told(feed, symbol, published_at=timezone.now() - timedelta(days=30))
        NewsAnnouncement.objects.filter(item=int(first)).update(announced_at=then)
    else:
        first = told(feed, symbol, published_at=then)
    told(feed, symbol)
    for since in (first, place):
        assert opened(feed.path, key=key).subscribe(symbol, since=since)["recovered"] is recovered


@pytest.mark.served
def test_more_than_a_portion_is_replayed_whole(opened: Open, key: str, symbol: str, feed: Feed) -> None:
    first = feed.publish(symbol)
    with transaction.atomic():
        missed = [feed.publish(symbol) for _ in range(510)]
    socket = opened(feed.path, key=key)
    socket.subscribe(symbol, since=first)
    assert heard_ids(socket, 510) == missed
    assert socket.is_open


@pytest.mark.served
def test_client_that_is_cut_off_again_and_again_hears_each_once(
    opened: Open, key: str, symbol: str, feed: Feed
) -> None:
    """While two writers publish."""
    dice = random.Random(7)  # noqa: S311 - the same cuts in each run
    each, heard = 60, [feed.publish(symbol)]

    def work() -> None:
        for _ in range(each):
            feed.publish(symbol)
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    while len(heard) <= 2 * each:
        socket = opened(feed.path, key=key)
        assert socket.subscribe(symbol, since=heard[-1], takeover=True)["recovered"] is True
        heard += heard_ids(socket, min(dice.randrange(25), 2 * each + 1 - len(heard)))
        # Without a word, and with others under way.
        socket.connection.socket.close()
    for thread in threads:
        thread.join()
    assert heard == list(map(str, feed.in_order(symbol)))


def test_bad_key_closes_with_4401_also_where_a_client_was_away(
    opened: Open, symbol: str, feed: Feed, told: Publish
) -> None:
    socket = opened(feed.path, key="nonsense")
    refused = socket.refused({"action": "subscribe", "since": told(feed, symbol)})
    assert (code_of(refused), socket.closed) == (("invalid_api_key", True, False), 4401)


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


@contextmanager
def unreadable_announcements() -> Iterator[None]:
    def refuse(statement: str, execute: Callable[[], Any]) -> Any:
        if Announcement._meta.db_table in statement and '"position" <=' in statement:
            raise AWAY
        return execute()

    with around_statements(refuse):
        yield


def test_replay_that_cannot_be_read_is_refused_instead_of_promised(
    service: Server, key: str, symbol: str, told: Publish
) -> None:
    first, _ = (told(FEEDS["signals"], symbol) for _ in range(2))
    with Socket(service, SIGNALS, key=key) as socket, unreadable_announcements():
        socket.send({"action": "subscribe", "symbols": [symbol], "since": first})
        heard = socket.hear_all()
    assert [frame["type"] for frame in heard] == ["error"]
    assert socket.connection.close_code == 4500


def test_who_may_open_no_stream_makes_nobody_read(opened: Open, symbol: str, told: Publish) -> None:
    key = make_key(make_account(tier=make_tier("single", streams=1)))
    place = opened(SIGNALS, key=key).subscribe(symbol)["since"]
    told(FEEDS["signals"], symbol)
    with unreadable_announcements():
        newcomer = opened(SIGNALS, key=key)
        refused = newcomer.refused({"action": "subscribe", "since": place})
    assert (refused["error"]["code"], newcomer.closed) == ("stream_limit_exceeded", 4429)


# Signals alone.
def closed(pk: str) -> str:
    assert close_at(Signal.objects.get(pk=pk), Decimal("1.0850"), Decimal("1.0852"))
    return pk


def kinds(frames: list[Frame]) -> list[tuple[str, str | None]]:
    return [(frame["id"], frame.get("type")) for frame in frames]


def test_signal_and_its_closure_are_those_of_rest_with_a_time(
    opened: Open, key: str, symbol: str, shared: Api
) -> None:
    plain, asked = opened(SIGNALS, key=key), opened(SIGNALS, key=key)
    plain.subscribe(symbol)
    asked.subscribe(symbol, **CLOSURES)
    pk = new_signal(symbol)
    heard = asked.hear()
    assert set(heard) == {
        *("id", "user", "symbol", "direction", "entry", "stop_loss", "take_profit", "timestamp", "time"),
    }
    answered = shared.ask(f"/api/signals/{pk}").json()
    assert heard == {name: answered[name] for name in answered if name != "status"} | {"time": heard["time"]}
    second = closed(pk), new_signal(symbol)
    closure = asked.hear()
    assert (closure.pop("type"), type(closure.pop("time"))) == ("signal.closed", int)
    assert set(closure) >= RESULT
    assert closure == shared.ask(f"/api/signals/{pk}").json()
    # It comes only to those who ask.
    assert kinds([plain.hear(), plain.hear()]) == [(each, None) for each in second]


def test_since_brings_closures_in_their_place_to_those_who_ask(
    opened: Open, key: str, symbol: str, told: Publish
) -> None:
    first, second = (told(FEEDS["signals"], symbol) for _ in range(2))
    closed(second)
    closed(first)
    third = told(FEEDS["signals"], symbol)
    asked, plain, later = (opened(SIGNALS, key=key) for _ in range(3))
    asked.subscribe(symbol, since=first, **CLOSURES)
    plain.subscribe(symbol, since=first)
    assert later.subscribe(symbol, since=f"closed:{second}", **CLOSURES)["recovered"] is True
    due = [(second, None), (second, "signal.closed"), (first, "signal.closed"), (third, None)]
    assert kinds([asked.hear() for _ in due]) == due
    assert kinds([plain.hear() for _ in range(2)]) == [(second, None), (third, None)]
    assert kinds([later.hear() for _ in range(2)]) == due[2:]
    assert all(socket.is_open for socket in (asked, plain, later))
    active = opened(SIGNALS, key=key).subscribe(symbol, since=f"closed:{third}")
    assert (active["recovered"], active["unrecovered"]) == (False, [symbol])


# News alone.
def test_item_is_that_of_the_feed_with_id_and_time_whatever_becomes_of_it(
    opened: Open, key: str, symbol: str, shared: Api
) -> None:
    socket = opened(NEWS, key=key)
    socket.subscribe(symbol)
    override_score(make_draft(symbol), 0.5, by="boss")
    reject(make_draft(symbol))
    item = make_draft(symbol, title="Euro firms", sentiment_score=0.25, published_at=timezone.now())
    publish(item, by="curator")
    heard = socket.hear()
    assert set(heard) == {*("title", "category", "sentiment", "sentiment_score", "timestamp", "id", "time")}
    assert (heard["id"], type(heard["time"])) == (item.pk, int)
    (rest,) = (
        each for each in shared.ask("/api/news?expand=id&limit=500").json()["items"] if each["id"] == item.pk
    )
    assert heard == rest | {"time": heard["time"]}
    override_score(item, -0.9, by="boss")
    take_back(item)
    publish(item, by="curator")
    last = publish_news(symbol)
    assert heard_ids(socket, 1) == [last]


def test_symbols_and_categories_must_both_match_and_an_item_comes_once(
    opened: Open, key: str, symbol: str
) -> None:
    other = make_instrument(f"OTHER{symbol}").symbol
    socket = opened(NEWS, key=key)
    reply = socket.subscribe(symbol, other, categories=["macro", "gold"])
    assert (reply["symbols"], reply["categories"]) == (sorted([symbol, other]), ["gold", "macro"])
    publish_news(symbol, category="forex")
    publish_news(category="gold")
    due = [publish_news(symbol, other, category="gold"), publish_news(other, category="macro")]
    assert heard_ids(socket, 2) == due


def test_categories_add_up_as_symbols_do_and_who_left_all_begins_anew(
    opened: Open, key: str, symbol: str
) -> None:
    socket = opened(NEWS, key=key)
    socket.subscribe(symbol, categories=["gold"])
    assert socket.subscribe(symbol, categories=["crypto"])["categories"] == ["gold", "crypto"]
    assert socket.ask({"action": "list"})["categories"] == ["gold", "crypto"]
    assert socket.subscribe(symbol)["categories"] == CATEGORIES
    assert socket.ask({"action": "unsubscribe"}) == {"type": "unsubscribed", "symbols": [], "categories": []}
    publish_news(symbol)
    assert socket.subscribe(symbol, categories=["gold"])["categories"] == ["gold"]
    publish_news(symbol, category="forex")
    last = publish_news(symbol, category="gold")
    assert heard_ids(socket, 1) == [last]


def test_missed_items_come_in_the_order_of_their_announcement_and_as_they_are_now(
    opened: Open, key: str, symbol: str, told: Publish
) -> None:
    feed = FEEDS["news"]
    first = told(feed, symbol)
    older = make_draft(symbol, published_at=timezone.now() - timedelta(days=3))
    newer, withdrawn = (told(feed, symbol, published_at=timezone.now()) for _ in range(2))
    publish(older, by="curator")
    override_score(older, -0.5, by="boss")
    # What staff took back is not replayed, and its place holds.
    take_back(NewsItem.objects.get(pk=withdrawn))
    for since, due in ((first, [newer, str(older.pk)]), (withdrawn, [str(older.pk)])):
        socket = opened(NEWS, key=key)
        assert socket.subscribe(symbol, since=since)["recovered"] is True
        heard = [socket.hear() for _ in due]
        assert [str(each["id"]) for each in heard] == due
        assert (heard[-1]["sentiment"], heard[-1]["sentiment_score"]) == ("bearish", -0.5)
        assert socket.is_open


def test_replay_has_only_what_is_subscribed_and_a_category_that_joins_only_its_own(
    opened: Open, key: str, symbol: str, told: Publish
) -> None:
    feed = FEEDS["news"]
    first = told(feed, symbol)
    missed = told(feed, symbol, category="crypto")
    told(feed, category="gold")
    wanted = told(feed, symbol, category="gold")
    socket = opened(NEWS, key=key)
    socket.subscribe(symbol, since=first, categories=["gold"])
    assert heard_ids(socket, 1) == [wanted]
    socket.subscribe(symbol, since=first, categories=["crypto"])
    assert heard_ids(socket, 1) == [missed]
