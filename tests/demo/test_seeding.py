"""The people, instruments and news of the demo: the same again, and taken from nobody."""

from __future__ import annotations

import csv

import pytest
from pytest_django import Settings

from accounts.key_text import is_well_formed
from accounts.models import Account, ApiKey, User
from core.times import MINUTE_MS
from demo.people import PUBLISHERS, STAFF, demo_keys, seed_people
from demo.seeding import remove, seed_instruments, seed_news, seed_signals
from instruments.catalogue import catalogue
from instruments.facts import TEST_SYMBOL
from instruments.models import Instrument, TradingCalendar
from instruments.saving import SHIPPED
from news.models import ItemScore, NewsItem, Outcome, Source
from news.sentiment.linear import linear_model
from signals_feed.models import Signal
from tests.factories import make_account, make_instrument, make_user
from tests.market.ticking import NOON_MS, ms

pytestmark = pytest.mark.django_db


def test_keys_follow_from_the_secret_and_from_no_other(settings: Settings) -> None:
    settings.SECRET_KEY = "one secret"
    keys = demo_keys()
    assert list(keys) == ["free", "pro", "premium"]
    assert len(set(keys.values())) == 3
    assert all(is_well_formed(secret) for secret in keys.values())
    assert demo_keys() == keys
    settings.SECRET_KEY = "another secret"
    assert not set(demo_keys().values()) & set(keys.values())


def test_seeding_again_adds_nobody_and_a_revoked_demo_key_works_again() -> None:
    seed_people()
    before = User.objects.count(), Account.objects.count(), ApiKey.objects.count()
    ApiKey.objects.update(revoked_at="2026-11-18T12:00Z")
    seed_people()
    assert (User.objects.count(), Account.objects.count(), ApiKey.objects.count()) == before
    assert not ApiKey.objects.exclude(revoked_at=None).exists()
    assert not any(user.has_usable_password() for user in User.objects.filter(username__in=PUBLISHERS))


def test_person_with_the_name_of_a_demo_account_gets_neither_key_nor_power() -> None:
    account = make_account(make_user("demo-pro"))
    make_account(make_user(STAFF))
    seed_people()
    assert not account.keys.exists()
    user = User.objects.get(username=STAFF)
    assert not user.is_staff
    assert not user.has_usable_password()


# The instrument that only the demo has.


def seeded() -> None:
    seed_instruments(lambda text: None)
    catalogue.load_now()


def test_only_the_demo_has_an_instrument_for_tests() -> None:
    with (SHIPPED / "instruments.csv").open() as rows:
        assert TEST_SYMBOL not in [row["symbol"] for row in csv.DictReader(rows)]
    make_instrument("EURUSD")
    seeded()
    assert set(Instrument.objects.values_list("symbol", flat=True)) == {"EURUSD", TEST_SYMBOL}
    test = catalogue.get(TEST_SYMBOL)
    assert test.name == "Test instrument"
    assert (test.volume_kind, test.order_flow_source) == ("traded", "trades")
    assert test.hours.is_open(ms("2026-12-25T12:00"))


def test_seeding_again_changes_nothing_and_it_goes_with_the_demo() -> None:
    seeded()
    Instrument.objects.filter(symbol=TEST_SYMBOL).update(active=False)
    count = Instrument.objects.count()
    seeded()
    assert Instrument.objects.count() == count
    assert not Instrument.objects.get(symbol=TEST_SYMBOL).active
    seed_people()
    remove(lambda text: None)
    assert not Instrument.objects.exists()
    assert not TradingCalendar.objects.exists()


def test_one_that_somebody_made_stays() -> None:
    own = make_instrument(TEST_SYMBOL)
    seeded()
    seed_people()
    remove(lambda text: None)
    assert list(Instrument.objects.all()) == [own]


def test_nobody_publishes_signals_on_it() -> None:
    seeded()
    Instrument.objects.exclude(symbol=TEST_SYMBOL).delete()
    catalogue.load_now()
    seed_people()
    seed_signals(NOON_MS, lambda text: None)
    assert not Signal.objects.exists()


def test_news_are_of_every_category_scored_and_settled_and_loading_them_again_changes_nothing() -> None:
    make_instrument("WTI")
    seed_people()
    catalogue.load_now()
    counts = []
    for now_ms in (NOON_MS, NOON_MS + MINUTE_MS):
        seed_news(now_ms, lambda said: None)
        counts.append((NewsItem.objects.count(), Source.objects.count()))
    assert counts[0] == counts[1]
    assert counts[0][0] == 39
    published = NewsItem.objects.published()
    assert set(published.values_list("category", flat=True)) == set(NewsItem.Category.values)
    assert NewsItem.objects.filter(status="draft").count() == 3
    assert NewsItem.objects.filter(symbols__symbol="WTI").exists()
    # Its sources ask nobody until somebody resumes them.
    assert set(Source.objects.values_list("is_active", "is_demo")) == {(False, True)}
    # What it said is settled from when it was published.
    assert Outcome.objects.count() == 2 * published.count()
    entered = {outcome.entered_at for outcome in Outcome.objects.all()}
    assert entered == {item.published_at for item in published}
    # Each title has the score of the shipped model.
    model = linear_model()
    scores = {score.item_id: score.version for score in ItemScore.objects.all()}
    for item in NewsItem.objects.all():
        assert (item.model, scores[item.pk]) == (model.identifier, model.version)
        assert item.sentiment_score == pytest.approx(model.score(item.title, item.category), abs=1e-6)
