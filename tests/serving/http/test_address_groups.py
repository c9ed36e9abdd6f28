from __future__ import annotations

import pytest

from serving.http.connections import AddressGroups


@pytest.mark.parametrize(
    ("host", "group"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("10.1.2.3", ""),
        ("192.0.2.1", ""),
        ("127.0.0.1", ""),
        ("::1", ""),
        ("", ""),
        ("socket", ""),
    ],
)
def test_whose_connections_count_together(host: str, group: str) -> None:
    assert AddressGroups("10.0.0.0/8, 192.0.2.1, proxy.internal", loopback_counts=False).of(host) == group


def test_loopback_counts_where_that_is_wanted() -> None:
    assert AddressGroups("", loopback_counts=True).of("127.0.0.1") == "127.0.0.1"


def test_nobody_counts_where_every_proxy_is_trusted() -> None:
    assert AddressGroups("*", loopback_counts=True).of("203.0.113.7") == ""
