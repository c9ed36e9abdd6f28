"""The status page: every day says what it was, by mouse and by keyboard, in every window and both themes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from status.models import NAMES, ComponentMinute, Incident, Minute
from status.summary import past_days
from status.views import summary_cache
from tests.factories import make_instrument, put_quote

from .conftest import OpenPage, beside
from .looks import faults, violations

DAY = 1440
BOXES = """(all) => all.map((each) => each.getBoundingClientRect())
  .map(({ x, y, right, bottom }) => [x, y, right, bottom])"""


@pytest.fixture(autouse=True)
def past(server: object) -> None:
    """Three days, the one in the middle with an hour without signals."""
    summary_cache.made_at = float("-inf")
    past_days.forget()
    first = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=2)
    at = [first + timedelta(minutes=n) for n in range(3 * DAY)]
    rows = [ComponentMinute(at=each, day=each.date(), **dict.fromkeys(NAMES, 1.0)) for each in at]
    for row in rows[DAY : DAY + 60]:
        row.signals = 0.0
    ComponentMinute.objects.bulk_create(rows)
    now = timezone.now().replace(second=0, microsecond=0)
    measured = (now - timedelta(minutes=n) for n in range(2, 40) if n != 20)
    Minute.objects.bulk_create(
        [Minute(at=each, process="a", p50_ms=1, p95_ms=4, p99_ms=18) for each in measured]
    )
    make_instrument("EURUSD")
    put_quote("EURUSD")
    Incident.objects.create(title="One provider of news does not answer").notes.create(
        text="We look into it."
    )


def days(page: Page) -> Locator:
    return page.get_by_label("Signal stream, day by day")


def test_page_fits_every_window_and_breaks_no_rule(open_page: OpenPage) -> None:
    assert faults(open_page("/status")) == []


def test_pointing_at_a_day_says_what_it_was(open_page: OpenPage) -> None:
    page = open_page("/status")
    day = days(page).locator("li").nth(88)
    said = day.locator("span")
    expect(said).to_have_css("opacity", "0")
    day.hover()
    expect(said).to_have_css("opacity", "1")
    assert "95.83%, down 1 h" in said.inner_text()
    expect(days(page).locator("li").nth(80)).to_contain_text("not measured")


def test_arrow_keys_go_from_day_to_day(open_page: OpenPage) -> None:
    page = open_page("/status")
    row = days(page)
    row.locator("li").last.focus()
    page.keyboard.press("ArrowLeft")
    expect(row.locator("li").nth(88)).to_be_focused()
    expect(row.locator("li").nth(88).locator("span")).to_have_css("opacity", "1")
    page.keyboard.press("Home")
    expect(row.locator("li").first).to_be_focused()
    assert row.locator("li[tabindex='0']").count() == 1


@pytest.mark.parametrize(("width", "shown"), [(360, 30), (1440, 90)])
def test_days_stand_side_by_side_within_their_row(open_page: OpenPage, width: int, shown: int) -> None:
    page = open_page("/status", viewport={"width": width, "height": 900})
    row = days(page)
    boxes = [box for box in row.locator("li").evaluate_all(BOXES) if box[2] > box[0]]
    assert len(boxes) == shown
    assert all(left[2] <= right[0] for left, right in zip(boxes, boxes[1:], strict=False))
    left, _, right, _ = row.evaluate_all(BOXES)[0]
    assert left <= boxes[0][0]
    assert boxes[-1][2] <= right + 0.5
    labels = page.locator(".ends span:visible").all_inner_texts()[:2]
    assert labels == [f"{shown} days ago", "today"]


def test_what_is_wrong_comes_before_what_works(open_page: OpenPage) -> None:
    page = open_page("/status")
    tops = [page.locator(each).first.bounding_box() for each in (".verdict", ".incident", ".components")]
    assert [top["y"] for top in tops if top] == sorted(top["y"] for top in tops if top)
    expect(page.locator(".verdict")).to_contain_text("One provider of news does not answer")
    assert not page.get_by_text("Everything works").count()


def test_latency_has_labelled_axes_beside_the_lines(open_page: OpenPage) -> None:
    page = open_page("/status")
    assert page.locator(".scale span").all_inner_texts() == ["20 ms", "10 ms", "0 ms"]
    assert page.locator(".times span").last.inner_text().endswith("UTC")
    scale, lines = page.locator(".scale").bounding_box(), page.locator(".latency svg").bounding_box()
    assert scale
    assert lines
    assert scale["x"] + scale["width"] <= lines["x"]


@pytest.mark.also_on("firefox")
def test_page_renews_itself_while_somebody_looks(open_page: OpenPage) -> None:
    page = open_page("/docs")
    page.clock.install()
    page.goto("/status")
    signals = days(page)
    signals.locator("li").last.focus()
    page.route("**/status", lambda route: route.fulfill(body="Bad gateway"))
    page.clock.run_for(61_000)
    lost = page.get_by_text("The service is not responding, so this page is out of date.")
    expect(lost).to_be_visible()
    expect(page.locator(".verdict .seen")).to_be_hidden()
    state = page.locator(".component .state").first
    said = state.inner_text()
    assert said == "unknown"
    expect(page.get_by_text("Their state is unknown now.")).to_be_visible()
    expect(page.get_by_text("Each instrument shows the age")).to_be_hidden()
    assert violations(page) == []

    page.unroute_all()
    beside(lambda: Incident.objects.update(title="The provider answers again"))
    summary_cache.made_at = float("-inf")
    page.clock.run_for(60_000)
    expect(page.locator(".verdict")).to_contain_text("The provider answers again")
    expect(lost).to_have_count(1)
    expect(lost).to_be_hidden()
    expect(page.locator(".verdict .seen")).to_be_visible()
    expect(state).not_to_have_text("unknown", use_inner_text=True)
    expect(signals.locator("li").last).to_be_focused()

    signals.locator("li").last.blur()
    beside(lambda: Incident.objects.all().delete())
    summary_cache.made_at = float("-inf")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator(".incident")).to_have_count(0)
    signals.locator("li").last.focus()
    page.keyboard.press("ArrowLeft")
    expect(signals.locator("li").nth(88)).to_be_focused()
