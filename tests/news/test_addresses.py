"""Addresses of feeds and stories."""

from __future__ import annotations

import pytest

from news.addresses import AddressRefused, read_feed_address, read_story_address, story_key
from news.ingest.fetching import is_public, read_address

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


# Which addresses a feed may live at.
def allowed(text: str) -> bool:
    address = read_address(text)
    assert address is not None
    return is_public(address)


@pytest.mark.parametrize(
    "text", ["93.184.216.34", "8.8.8.8", "1.1.1.1", "2606:2800:220:1::1", "2a00:1450::1"]
)
def test_a_public_address_may_be_asked(text: str) -> None:
    assert allowed(text)


@pytest.mark.parametrize(
    "text",
    [
        *("127.0.0.1", "127.255.255.254", "0.0.0.1", "0.1.2.3", "10.0.0.1", "172.16.0.1", "192.168.1.1"),
        *("169.254.169.254", "100.64.0.1", "192.0.0.1", "192.0.2.1", "198.18.0.1", "203.0.113.9"),
        *("224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "192.88.99.1"),
        # Special purposes that are called globally reachable, and the host agent of Azure.
        *("192.0.0.9", "192.0.0.10", "192.31.196.1", "192.52.193.1", "192.175.48.1", "168.63.129.16"),
        *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "fec0::1"),
        # IPv4 in disguise: mapped, compatible, NAT64 (also its local prefix), 6to4, Teredo.
        *("::ffff:10.0.0.1", "::ffff:8.8.8.8", "::7f00:1", "64:ff9b::7f00:1", "64:ff9b:1::1"),
        *("2002:7f00:1::", "2001:0:4136:e378::1", "2001:db8::1", "3fff::1", "100::1", "5f00::1"),
        *("2001:1::1", "2001:3::1", "2001:4:112::1", "2001:20::1", "2620:4f:8000::1", "64:ff9b::a3f:8110"),
    ],
)
def test_no_other_address_is(text: str) -> None:
    assert not allowed(text)


@pytest.mark.parametrize("text", ["", "localhost", "1.2.3", "::g", "127.0.0.1 "])
def test_what_is_no_address_is_none(text: str) -> None:
    assert read_address(text) is None
