"""Addresses of feeds and stories."""

from __future__ import annotations

import pytest

from news.addresses import AddressRefused, read_feed_address, read_story_address, story_key

FEED = "https://wire.example/rss/all.xml"


@pytest.mark.parametrize(
    "address", ["https://a.example/f", "http://a.example:8080/f?x=1", "HTTPS://A.example:443/"]
)
def test_a_feed_is_asked_over_http(address: str) -> None:
    assert read_feed_address(address).host == "a.example"


NOT_HTTP = "a feed's address starts with https:// or http://"


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        *((address, NOT_HTTP) for address in ("ftp://a.example/f", "javascript:alert(1)", "a.example/f")),
        ("https:///f", NOT_HTTP),
        ("https://me:secret@a.example/", "a name or password in the address is never sent: leave it out"),
        *((f"https://a.example:{n}/", f"port {n} is none of 80, 443, 8080, 8443") for n in (22, 6379, 99999)),
        ("https://[::g]/", "the address cannot be read"),
        ("https://a.example/\x00", "the address cannot be read"),
        ("https://a.example/" + "x" * 500, "the address is longer than 500 characters"),
    ],
)
def test_any_other_address_is_refused_with_the_reason(address: str, reason: str) -> None:
    with pytest.raises(AddressRefused) as caught:
        read_feed_address(address)
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("link", "address"),
    [
        ("https://wire.example/gold?id=7", "https://wire.example/gold?id=7"),
        (" /gold ", "https://wire.example/gold"),
        ("//other.example/gold", "https://other.example/gold"),
        ("", ""),
        ("javascript:alert(1)", ""),
        ("data:text/html,x", ""),
        ("https://me:secret@wire.example/", ""),
        ("https://wire.example/a b", ""),
        ("https://wire.example/\u202egpj.exe", ""),
        ("https://[::g]/", ""),
        ("https://wire.example/" + "x" * 500, ""),
    ],
)
def test_a_storys_address_is_whole_or_nothing(link: str, address: str) -> None:
    assert read_story_address(link, FEED) == address


@pytest.mark.parametrize(
    "address",
    [
        "https://www.wire.example/gold?id=7&x=1",
        "http://WIRE.example/gold/?x=1&id=7",
        "https://wire.example/gold?utm_source=rss&id=7&x=1&utm_medium=feed",
        "https://wire.example/gold?fbclid=abc&id=7&x=1#comments",
        "https://wire.example:443/gold?ref=home&id=7&guccounter=1&x=1",
    ],
)
def test_how_a_reader_came_is_no_part_of_the_story(address: str) -> None:
    assert story_key(address) == story_key("https://wire.example/gold?id=7&x=1") != story_key("") == ""


@pytest.mark.parametrize(
    "address",
    ["https://wire.example/gold?id=8", "https://wire.example/Gold?id=7", "https://other.example/gold?id=7"],
)
def test_another_page_is_another_story(address: str) -> None:
    assert story_key(address) != story_key("https://wire.example/gold?id=7")
