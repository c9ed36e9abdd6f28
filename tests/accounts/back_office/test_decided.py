"""A request that is decided is not decided again."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.db.models import Model

from accounts.ending.deletion import delete_account
from accounts.models import TierRequest
from signals_feed.publishers.requests import PublisherRequest

from .office import Office, address, text_of
from .rows import one_of_each

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("page", ["accept", "decline"])
@pytest.mark.parametrize("model", [TierRequest, PublisherRequest])
def test_a_decided_request_says_who_decided_and_offers_no_button(
    office: Office, model: type[Model], page: str
) -> None:
    row = one_of_each()[model]
    assert 'type="submit"' in (open_page := text_of(office.get(address(row, page, row.pk))))
    assert "cannot be decided again" not in open_page
    office.post(address(row, "accept", row.pk), answered="1")
    seen = text_of(office.get(address(row, page, row.pk)))
    assert "It was accepted by boss on " in seen
    assert " UTC. It cannot be decided again." in seen
    assert 'name="answer"' not in seen
    assert ">Accept</" not in seen.replace("\n", "").replace(" ", "")
    assert ">Decline</" not in seen.replace("\n", "").replace(" ", "")


def test_a_request_is_called_by_the_name_of_who_asked(office: Office) -> None:
    request = one_of_each()[PublisherRequest]
    assert isinstance(request, PublisherRequest)
    assert str(request) == f"Request of {request.account} to publish signals"


def test_the_log_forgets_that_name_with_the_account(office: Office) -> None:
    request = one_of_each()[PublisherRequest]
    assert isinstance(request, PublisherRequest)
    name = request.account.user.username
    office.post(address(request, "accept", request.pk), answered="1")
    assert name in LogEntry.objects.latest("pk").object_repr
    delete_account(request.account.user)
    assert name not in LogEntry.objects.latest("pk").object_repr
