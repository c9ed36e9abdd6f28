"""Which addresses a feed may live at."""

from __future__ import annotations

import pytest

from news.ingest.fetching import is_public, read_address


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
    ],
)
def test_no_other_ipv4_address_is(text: str) -> None:
    assert not allowed(text)


@pytest.mark.parametrize(
    "text",
    [
        *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "fec0::1"),
        # IPv4 in disguise: mapped, compatible, NAT64 (also its local prefix), 6to4, Teredo.
        *("::ffff:10.0.0.1", "::ffff:8.8.8.8", "::7f00:1", "64:ff9b::7f00:1", "64:ff9b:1::1"),
        *("2002:7f00:1::", "2001:0:4136:e378::1", "2001:db8::1", "3fff::1", "100::1", "5f00::1"),
        *("2001:1::1", "2001:3::1", "2001:4:112::1", "2001:20::1", "2620:4f:8000::1", "64:ff9b::a3f:8110"),
    ],
)
def test_no_other_ipv6_address_is(text: str) -> None:
    assert not allowed(text)


@pytest.mark.parametrize("text", ["", "localhost", "1.2.3", "::g", "127.0.0.1 "])
def test_what_is_no_address_is_none(text: str) -> None:
    assert read_address(text) is None
