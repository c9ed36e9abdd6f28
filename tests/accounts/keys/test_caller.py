from __future__ import annotations

from accounts.keys.caller import NO_KEY, PAGE_REQUESTS, PAGE_STREAMS, Allowances, Caller, of_pages

KEY = Allowances(tier="premium", requests=6000, streams=50, ai_calls=100, archive=True)
CALLER = Caller(7, 3, "ada", KEY, None, False, "7")


def test_pages_of_an_account_count_together_and_those_of_one_address_visitors() -> None:
    assert (of_pages(7), of_pages(7, "203.0.113.7")) == ("pages:7", "visitors:203.0.113.7")


def test_a_page_has_the_limits_of_pages_and_only_the_ai_calls_of_its_account() -> None:
    page = CALLER.on_page("203.0.113.7")
    assert page.allowances == Allowances(
        tier="premium", requests=PAGE_REQUESTS, streams=PAGE_STREAMS, ai_calls=100, archive=False
    )
    assert (page.key_id, page.counted_under) == (NO_KEY, "visitors:203.0.113.7")
    assert (page.is_page, page.policy, CALLER.policy) == (True, "pages", "premium")
