"""A word without an end breaks where it stands and pushes nothing out of the window."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from accounts.models import Tier, TierRequest
from signals_feed.publishers.requests import PublisherRequest
from status.models import Incident
from status.views import summary_cache
from tests.accounts.back_office.office import Office, add_to, address, list_of
from tests.client import Server
from tests.factories import make_account, make_user

from .conftest import OpenPage
from .looks import resize
from .test_back_office import enter

WIDTHS = (360, 768, 1440)
BEYOND = """() => [...document.querySelectorAll("h1, h2, h3, p, strong, li, td, label")]
  .filter((part) => part.getClientRects().length && part.getBoundingClientRect().right > innerWidth + 1)
  .filter((part) => !part.closest("#nav-sidebar, .unseen"))
  .map((part) => part.textContent.trim().slice(0, 40))"""


def faults(page: Page) -> list[object]:
    found: list[object] = []
    for width in WIDTHS:
        resize(page, width, 900)
        over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        found += [(width, over)] * (over > 0) + [(width, each) for each in page.evaluate(BEYOND)]
    return found


@pytest.fixture
def office(server: Server) -> Office:
    """Before the browser: while Playwright runs, this thread may not use the ORM."""
    summary_cache.made_at = float("-inf")
    return Office(make_user("boss", is_staff=True, is_superuser=True))


@pytest.fixture
def incident(office: Office) -> Incident:
    return Incident.objects.create(title="W" * 120)


@pytest.mark.usefixtures("incident")
def test_status_page_fits_phones(open_page: OpenPage) -> None:
    page = open_page("/status", viewport={"width": 360, "height": 740})
    assert page.locator(".verdict").inner_text().count("W") == 120
    assert faults(page) == []


def test_incidents_in_the_back_office_fit(
    server: Server, office: Office, incident: Incident, open_page: OpenPage
) -> None:
    pages = [list_of(incident), address(incident, "change", incident.pk)]
    page = enter(open_page, server, office, "light", 1440)
    for path in pages:
        page.goto(path)
        assert faults(page) == []
    page.goto(pages[0])
    state = page.locator("#result_list .field-state").bounding_box()
    assert state is not None
    assert state["x"] + state["width"] <= 1440


def test_message_of_what_was_added_fits(server: Server, office: Office, open_page: OpenPage) -> None:
    page = enter(open_page, server, office, "light", 1440)
    page.goto(add_to(Incident))
    page.locator("[name=title]").fill("M" * 120)
    page.locator("[name=_save]").click()
    page.locator("#result_list").wait_for()
    assert page.get_by_text("was added").count() == 1
    assert faults(page) == []


@pytest.fixture
def questions(office: Office) -> list[str]:
    """The pages of two requests by somebody with the longest of names."""
    account = make_account(user=make_user("u" * 150, email="ada@example.com"))
    tier = Tier.objects.get(name="pro")
    requests = [
        TierRequest.objects.create(account=account, wanted=tier, why="W" * 500),
        PublisherRequest.objects.create(account=account, why="W" * 500),
    ]
    return [address(each, name, each.pk) for each in requests for name in ("accept", "decline", "change")]


def test_questions_to_staff_fit(
    server: Server, office: Office, questions: list[str], open_page: OpenPage
) -> None:
    page = enter(open_page, server, office, "light", 1440)
    for path in questions:
        page.goto(path)
        assert (path, faults(page)) == (path, [])
