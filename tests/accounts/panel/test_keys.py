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

from accounts.models import Account, ApiKey
from core.events.outbox import ControlEvent
from tests.accounts.browser import logged_in
from tests.factories import make_account, make_key

pytestmark = [pytest.mark.django_db, pytest.mark.services]
KEYS = "/settings/keys"
Counting = Callable[[int], AbstractContextManager[None]]


def issue(page: Client, name: str = "laptop", newest: str = "none") -> Any:
    return page.post(KEYS, {"name": name, "newest": newest})


def test_own_keys_are_listed_with_their_facts(page: Client, account: Account) -> None:
    at = datetime(2026, 11, 18, 12, tzinfo=UTC)
    make_key(account, "server", created_at=at, last_used_at=at + timedelta(hours=1))
    make_key(name="secret project")
    answer, key = page.get(KEYS), account.keys.get()
    assert "no-store" in answer["Cache-Control"]
    tier = ("Free tier", *(f"<dd>{limit}</dd>" for limit in (60, 2, 5)))
    for shown in (
        *tier,
        f"{key.prefix}…",
        'badge active">active<',
        "18 Nov 2026, 12:00",
        "18 Nov 2026, 13:00",
    ):
        assert shown in answer.text
    assert key.digest not in answer.text
    assert "secret project" not in answer.text
    # Those that were rolled, have expired or were revoked say so.
    now, hour = datetime.now(UTC), timedelta(hours=1)
    ApiKey.objects.all().delete()
    make_key(account, expires_at=now + hour)
    make_key(account, expires_at=now - hour)
    make_key(account, revoked_at=now)
    shown = page.get(KEYS).text
    assert [f'badge {state}">{state}<' in shown for state in ("rolled", "expired", "revoked")] == [True] * 3
    assert (shown.count("Roll this key"), shown.count("Yes, revoke this key")) == (0, 1)


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
    ApiKey.objects.bulk_create(
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
    )
    with CaptureQueriesContext(connection) as asked:
        answer = page.get(KEYS)
    listed = [query["sql"] for query in asked if '"digest"' in query["sql"] and "LIMIT" not in query["sql"]]
    assert [row.key.name for row in answer.context["usable"]] == ["usable"]
    shown = [row.key.name for row in answer.context["ended"]]
    assert shown == [f"ended {number:04}" for number in range(2000, 1950, -1)]
    assert "1950 older ones are not listed." in answer.text
    # Without an end only those that can be used, of which there are few.
    assert ["expires_at" in sql.partition("WHERE")[2] for sql in listed] == [True]


def test_issued_key_is_shown_once_and_known_by_its_digest_only(page: Client, account: Account) -> None:
    answer = issue(page)
    secret, key = answer.context["secret"], account.keys.get()
    assert (answer.status_code, secret in answer.text, key.name) == (200, True, "laptop")
    assert secret.startswith(key.prefix)
    assert "no-store" in answer["Cache-Control"]
    kept = [*ApiKey.objects.values(), *ControlEvent.objects.values(), answer.headers, answer.cookies]
    kept += [session.get_decoded() for session in Session.objects.all()]
    assert secret not in f"{kept}{page.get(KEYS).text}"


def test_form_sent_again_issues_no_second_key_unless_on_purpose(page: Client, account: Account) -> None:
    assert page.post(KEYS, {"name": "without its mark"}).status_code == 409
    assert not account.keys.exists()
    secret = issue(page).context["secret"]
    again = issue(page)
    assert (again.status_code, secret in again.text, account.keys.count()) == (409, False, 1)
    assert issue(page, newest=again.context["newest"]).status_code == 200
    assert account.keys.count() == 2


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


@pytest.mark.parametrize("origin", ["http://localhost:8123", "https://127.0.0.1"])
def test_command_to_try_names_this_address_and_reads_the_key_from_the_line_above_it(
    page: Client, origin: str
) -> None:
    scheme, host = origin.split("://")
    fields = {"name": "laptop", "newest": "none"}
    answer = page.post(KEYS, fields, secure=scheme == "https", headers={"host": host})
    line = html.escape(f'curl -H "X-API-Key: $TICKWIRE_KEY" {origin}/api/market/EURUSD/quote')
    assert 0 < answer.text.index(f"export TICKWIRE_KEY={answer.context['secret']}") < answer.text.index(line)
