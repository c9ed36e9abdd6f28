"""The index of the search: one list for everybody, in which each page can be found."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from pages.documents.contents import sections
from pages.documents.search import LONGEST_HERE

MOST_BYTES = 350_000


@pytest.fixture(scope="module")
def passages() -> Any:
    return Client().get("/docs/search.json").json()


def test_every_page_is_in_it(passages: Any) -> None:
    found = {address.partition("#")[0] for _, _, _, address, *_ in passages}
    documented = {entry.path for section in sections() for entry in section.entries}
    assert found == {*documented, "/pricing", "/status"}


@pytest.mark.parametrize(
    ("word", "address"),
    [
        ("closed_only", "/docs/api/getMarket"),
        ("invalid_cursor", "/docs/api/getHistory"),
        ("wscat", "/docs/without-client#streams"),
        ("cumulative_delta", "/docs/streams/orderflow#orderflowtick"),
        ("resume.epoch", "/docs/streams/messages#subscribe"),
        ("X-Last-Closed", "/docs/api/headers"),
        ("slow_consumer", "/docs/streams/errors"),
        ("tickwire-server doctor", "/docs/operate/doctor"),
        ("absorption counts towards the minute", "/docs/computed#flow"),
    ],
)
def test_word_is_found_where_it_is_explained(passages: Any, word: str, address: str) -> None:
    assert address in [row[3] for row in passages if word in row[4] or word in row[5].split()]


def test_passages_are_short_without_samples_and_the_whole_is_small(passages: Any) -> None:
    assert not [text for *_, text, _ in passages if "YOUR_KEY" in text or 'TICKWIRE_KEY"]' in text]
    assert all(len(text) <= LONGEST_HERE for *_, text, _ in passages)
    assert len(Client().get("/docs/search.json").content) < MOST_BYTES


def test_unchanged_index_is_not_sent_again() -> None:
    first = Client().get("/docs/search.json")
    assert first["Cache-Control"] == "public, max-age=300"
    again = Client().get("/docs/search.json", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
