import html
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.keys.issuing import MAX_USABLE_KEYS
from accounts.models import Account, ApiKey, User
from core.events.outbox import ControlEvent
from tests.factories import make_account, make_key, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.services]
KEYS = "/settings/keys"
Counting = Callable[[int], AbstractContextManager[None]]


@pytest.fixture
def account() -> Account:
    return make_account(make_user("ada"))


@pytest.fixture
def page(account: Account) -> Client:
    return logged_in(account.user)


def logged_in(user: User) -> Client:
    client = Client(headers={"host": "127.0.0.1:8000"}, SERVER_NAME="127.0.0.1")
    client.force_login(user)
    return client


def issue(page: Client, name: str = "laptop", newest: str = "none") -> Any:
    return page.post(KEYS, {"name": name, "newest": newest})


def test_key_page_is_never_cached(page: Client) -> None:
    assert "no-store" in page.get(KEYS)["Cache-Control"]


def test_first_visit_opens_a_free_account() -> None:
    user = make_user("new")
    assert "Free tier" in logged_in(user).get(KEYS).text
    assert Account.objects.get(user=user).tier.name == "free"


def test_tier_is_shown_with_its_limits() -> None:
    page = logged_in(make_account(tier="premium").user)
    shown = page.get(KEYS).text
    assert "Premium tier" in shown
    assert [f"<dd>{limit}</dd>" in shown for limit in (300, 10, 50)] == [True] * 3


def test_key_is_listed_with_its_facts(page: Client, account: Account) -> None:
    at = datetime(2026, 11, 18, 12, tzinfo=UTC)
    make_key(account, "server", created_at=at, last_used_at=at + timedelta(hours=1))
    shown = page.get(KEYS).text
    key = account.keys.get()
    assert f"{key.prefix}…" in shown
    assert key.digest not in shown
    assert '<span class="badge active">active</span>' in shown
    assert "18 Nov 2026, 12:00 UTC" in shown
    assert "18 Nov 2026, 13:00 UTC" in shown


def test_rolled_expired_and_revoked_keys_say_so(page: Client, account: Account) -> None:
    now = datetime.now(UTC)
    make_key(account, expires_at=now + timedelta(hours=1))
    make_key(account, expires_at=now - timedelta(hours=1))
    make_key(account, revoked_at=now)
    shown = page.get(KEYS).text
    assert [f'badge {state}">{state}<' in shown for state in ("rolled", "expired", "revoked")] == [True] * 3
    assert shown.count("Roll this key") == 0
    assert shown.count("Yes, revoke this key") == 1


def test_another_accounts_keys_are_not_listed(page: Client) -> None:
    make_key(name="secret project")
    assert "secret project" not in page.get(KEYS).text


def test_number_of_queries_does_not_grow_with_the_keys(
    page: Client, account: Account, django_assert_num_queries: Counting
) -> None:
    for number in range(10):
        make_key(account, f"key {number}")
        make_key(account, f"ended key {number}", revoked_at=datetime.now(UTC))
    # Session, user, account with tier, first steps (2), usable keys, ended ones and how many, newest key.
    with django_assert_num_queries(9):
        page.get(KEYS)


def test_page_reads_no_more_ended_keys_than_it_shows(page: Client, account: Account) -> None:
    make_key(account, "usable")
    now = datetime.now(UTC)
    many = [
        ApiKey(
            account=account,
            name=f"ended {number:04}",
            prefix=f"tw_live_{number:08}",
            digest=f"{number:064x}",
            created_at=now - timedelta(days=2, seconds=-number),
            expires_at=now - timedelta(days=1) if number % 2 else None,
            revoked_at=None if number % 2 else now,
        )
        for number in range(1, 2001)
    ]
    ApiKey.objects.bulk_create(many)
    with CaptureQueriesContext(connection) as asked:
        answer = page.get(KEYS)
    listed = [query["sql"] for query in asked if '"digest"' in query["sql"] and "LIMIT" not in query["sql"]]
    assert [row.key.name for row in answer.context["usable"]] == ["usable"]
    assert [row.key.name for row in answer.context["ended"]] == [
        f"ended {number:04}" for number in range(2000, 1950, -1)
    ]
    assert "1950 older ones are not listed." in answer.text
    # Without an end only those that can be used, of which there are few.
    assert ["expires_at" in sql.partition("WHERE")[2] for sql in listed] == [True]


def test_issued_key_is_shown_and_known_by_its_digest_only(page: Client, account: Account) -> None:
    answer = issue(page)
    secret = answer.context["secret"]
    key = account.keys.get()
    assert answer.status_code == 200
    assert secret in answer.text
    assert secret.startswith(key.prefix)
    assert key.name == "laptop"
    assert not [value for value in ApiKey.objects.values_list().get() if secret in str(value)]
    assert not [event for event in ControlEvent.objects.all() if secret in str(event.facts)]


def test_secret_is_in_no_address_cookie_session_or_later_page(page: Client) -> None:
    answer = issue(page)
    secret = answer.context["secret"]
    assert not answer.has_header("Location")
    assert "no-store" in answer["Cache-Control"]
    assert secret not in str(answer.cookies)
    assert not [session for session in Session.objects.all() if secret in str(session.get_decoded())]
    assert secret not in page.get(KEYS).text


def test_sending_the_form_again_issues_no_second_key(page: Client, account: Account) -> None:
    secret = issue(page).context["secret"]
    again = issue(page)
    assert again.status_code == 409
    assert "No key was issued, because" in again.text
    assert secret not in again.text
    assert account.keys.count() == 1


def test_refused_form_can_be_sent_anew_on_purpose(page: Client, account: Account) -> None:
    issue(page)
    newest = issue(page).context["newest"]
    assert issue(page, newest=newest).status_code == 200
    assert account.keys.count() == 2


def test_form_without_its_mark_issues_nothing(page: Client, account: Account) -> None:
    assert page.post(KEYS, {"name": "laptop"}).status_code == 409
    assert not account.keys.exists()


@pytest.mark.django_db(transaction=True)
def test_two_presses_at_once_issue_one_key(transactional_db: None) -> None:
    account = make_account()
    clients = [logged_in(account.user) for _ in range(4)]
    together, statuses = Barrier(len(clients)), list[int]()

    def press(client: Client) -> None:
        together.wait()
        statuses.append(issue(client).status_code)
        connection.close()

    threads = [Thread(target=press, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200, 409, 409, 409]
    assert account.keys.count() == 1


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "two\nlines", "right\u202eleft", "nul\x00"])
def test_bad_name_is_refused(page: Client, account: Account, name: str) -> None:
    answer = issue(page, name)
    assert answer.status_code == 400
    assert answer.context["form"].errors["name"]
    assert not account.keys.exists()


def test_name_is_text_everywhere(page: Client, account: Account) -> None:
    name = "<script>alert(1)</script>"
    assert name not in issue(page, name).text
    assert name not in page.get(KEYS).text
    revoked = page.post(f"{KEYS}/{account.keys.get().pk}/revoke", follow=True)
    assert name not in revoked.text
    assert html.escape(name) in revoked.text


def test_full_account_is_told_to_revoke_one(page: Client, account: Account) -> None:
    for _ in range(MAX_USABLE_KEYS):
        make_key(account)
    answer = issue(page, newest=page.get(KEYS).context["newest"])
    assert answer.status_code == 409
    assert "25 usable keys at most. Revoke one first." in answer.text


@pytest.mark.parametrize("origin", ["http://localhost:8123", "https://127.0.0.1"])
def test_curl_line_names_the_address_the_page_was_opened_at(page: Client, origin: str) -> None:
    scheme, host = origin.split("://")
    answer = page.post(
        KEYS, {"name": "laptop", "newest": "none"}, secure=scheme == "https", headers={"host": host}
    )
    line = f'curl -H "X-API-Key: $TICKWIRE_KEY" {origin}/api/market/EURUSD/quote'
    assert html.escape(line) in answer.text


def test_command_to_try_reads_the_key_from_the_line_above_it(page: Client) -> None:
    answer = page.post(KEYS, {"name": "laptop", "newest": "none"})
    secret = answer.context["secret"]
    assert secret not in answer.context["curl"]
    assert answer.text.index(f"export TICKWIRE_KEY={secret}") < answer.text.index("$TICKWIRE_KEY")
