"""The demo's news: of every category, with a past that its market settles, and sources that wait."""

from __future__ import annotations

import pytest

from core.times import MINUTE_MS
from demo.news import seed_news
from demo.people import seed_people
from instruments.catalogue import catalogue
from news.models import ItemScore, NewsItem, Outcome, Source
from news.sentiment.linear import linear_model
from tests.factories import NOON, make_instrument

pytestmark = pytest.mark.django_db
NOON_MS = round(NOON.timestamp() * 1000)


@pytest.fixture
def demo() -> None:
    make_instrument("WTI")
    seed_people()
    catalogue.load_now()
    seed_news(NOON_MS, lambda said: None)


def test_it_is_of_every_category_and_mostly_published(demo: None) -> None:
    categories = NewsItem.objects.published().values_list("category", flat=True)
    assert set(categories) == set(NewsItem.Category.values)
    assert NewsItem.objects.filter(status="draft").count() == 3
    assert NewsItem.objects.filter(symbols__symbol="WTI").exists()
    # Its sources ask nobody until somebody resumes them.
    assert set(Source.objects.values_list("is_active", "is_demo")) == {(False, True)}


def test_what_it_said_is_settled_from_when_it_was_published(demo: None) -> None:
    published = NewsItem.objects.published()
    assert Outcome.objects.count() == 2 * published.count()
    assert {outcome.entered_at for outcome in Outcome.objects.all()} == {
        item.published_at for item in published
    }


def test_each_title_has_the_score_of_the_shipped_model(demo: None) -> None:
    """And under its name, as `score_headlines` would print it."""
    model = linear_model()
    items = list(NewsItem.objects.all())
    assert len(items) == 39
    assert {(item.model, ItemScore.objects.get(item=item).version) for item in items} == {
        (model.identifier, model.version)
    }
    assert [item.sentiment_score for item in items] == [
        pytest.approx(model.score(item.title, item.category), abs=1e-6) for item in items
    ]


def test_loading_it_again_changes_nothing(demo: None) -> None:
    before = NewsItem.objects.count(), Source.objects.count()
    seed_news(NOON_MS + MINUTE_MS, lambda said: None)
    assert (NewsItem.objects.count(), Source.objects.count()) == before
