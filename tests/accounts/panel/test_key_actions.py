from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from accounts.keys.issuing import MOST_KEYS_A_DAY, issue_key, roll_key
from accounts.models import Account, ApiKey
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from tests.accounts.back_office.office import published
from tests.factories import make_account

pytestmark = [pytest.mark.django_db, pytest.mark.services]
KEYS = "/settings/keys"


def a_key(account: Account) -> ApiKey:
    return issue_key(account, "laptop", by="test")[0]


@pytest.mark.parametrize(("hours", "state"), [(0, "expired"), (1, "rolled"), (72, "rolled")])
def test_rolling_shows_the_successor_and_keeps_the_old_key_for_the_overlap(
    page: Client, account: Account, hours: int, state: str
) -> None:
    key = a_key(account)
    answer = page.post(f"{KEYS}/{key.pk}/roll", {"overlap_hours": hours})
    key.refresh_from_db()
    assert (answer.status_code, answer.context["secret"] in answer.text) == (200, True)
    assert "no-store" in answer["Cache-Control"]
    assert key.state(datetime.now(UTC)) == state
    assert key.expires_at is not None
    assert abs(key.expires_at - datetime.now(UTC) - timedelta(hours=hours)) < timedelta(minutes=1)
    # Once.
    assert page.post(f"{KEYS}/{key.pk}/roll", {"overlap_hours": 24}).status_code == 409
    assert account.keys.count() == 2


@pytest.mark.parametrize("hours", ["", "-1", "2", "73", "many"])
def test_overlap_is_one_of_those_offered(page: Client, account: Account, hours: str) -> None:
    key = a_key(account)
    assert page.post(f"{KEYS}/{key.pk}/roll", {"overlap_hours": hours}).status_code == 400
    assert account.keys.count() == 1


def test_rolling_on_and_on_ends_with_the_day_s_keys_and_revoking_does_not(
    page: Client, account: Account
) -> None:
    key = a_key(account)
    for _ in range(MOST_KEYS_A_DAY - 2):
        key, _ = roll_key(key, overlap_hours=0, by="ada")
    answers = []
    for _ in range(2):
        newest = account.keys.latest("pk")
        answers.append(page.post(f"{KEYS}/{newest.pk}/roll", {"overlap_hours": 0}).status_code)
    answers.append(page.post(KEYS, {"name": "another", "newest": str(newest.pk)}).status_code)
    assert answers == [200, 409, 409]
    assert account.keys.count() == MOST_KEYS_A_DAY
    assert ControlEvent.objects.count() == 2 * MOST_KEYS_A_DAY - 1
    page.post(f"{KEYS}/{newest.pk}/revoke")
    newest.refresh_from_db()
    assert newest.revoked_at is not None


def test_revoking_ends_the_key_and_tells_every_process_once(page: Client, account: Account) -> None:
    key = a_key(account)
    path = f"{KEYS}/{key.pk}/revoke"
    assert "is revoked. It stops working within 2 seconds." in page.post(path, follow=True).text
    assert "has already been revoked" in page.post(path, follow=True).text
    key.refresh_from_db()
    assert key.revoked_at is not None
    assert published()[1:] == [(EventKind.KEY_REVOKED, "ada")]


@pytest.mark.parametrize("action", ["roll", "revoke"])
@pytest.mark.parametrize("pk", ["theirs", "0", "9" * 30])
def test_a_key_that_is_not_ones_own_is_404(page: Client, action: str, pk: str) -> None:
    theirs = a_key(make_account())
    path = f"{KEYS}/{theirs.pk if pk == 'theirs' else pk}/{action}"
    assert page.post(path, {"overlap_hours": 24}).status_code == 404
    theirs.refresh_from_db()
    assert (theirs.revoked_at, theirs.expires_at) == (None, None)


@pytest.mark.parametrize("action", ["roll", "revoke"])
@pytest.mark.parametrize("method", ["get", "head", "put", "delete"])
def test_only_a_post_acts(page: Client, account: Account, action: str, method: str) -> None:
    key = a_key(account)
    answer = getattr(page, method)(f"{KEYS}/{key.pk}/{action}")
    assert (answer.status_code, answer["Allow"]) == (405, "POST")
    key.refresh_from_db()
    assert (key.revoked_at, key.expires_at) == (None, None)


@pytest.mark.parametrize("path", [KEYS, f"{KEYS}/1/roll", f"{KEYS}/1/revoke", "/accounts/logout/"])
def test_a_post_from_elsewhere_is_refused(account: Account, path: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(account.user)
    answer = client.post(path, {"name": "x", "newest": "none", "overlap_hours": 24})
    assert answer.status_code == 403
    assert "Nothing was done, to be safe" in answer.text
    assert not account.keys.exists()
