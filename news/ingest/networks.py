"""Which addresses of the network a feed may live at: those that anybody can reach, and no others."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

AnyAddress = IPv4Address | IPv6Address

# Everything in IANA's registry of special-purpose addresses, whether this version of Python knows it or not,
# and whether it is globally reachable or not: none of it is where a publisher has a feed.
NO_HOSTS_4 = tuple(
    ip_network(block)
    for block in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24"),
        *("192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
        *("224.0.0.0/4", "240.0.0.0/4"),
        # Azure answers every machine of its own here, with their certificates and settings.
        "168.63.129.16/32",
    )
)
UNICAST_6 = ip_network("2000::/3")
# Teredo and its neighbours, 6to4, documentation, the anycast of AS112, SRv6: an IPv4 address may hide
# inside, or nothing at all.
NO_HOSTS_6 = tuple(
    ip_network(block)
    for block in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
)


def read_address(text: str) -> AnyAddress | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def is_public(address: AnyAddress) -> bool:
    """NAT64 (64:ff9b::) and IPv4 mapped into IPv6 (::ffff:) lie outside the unicast block."""
    if isinstance(address, IPv6Address):
        return (
            address.scope_id is None
            and address in UNICAST_6
            and not address.is_private
            and not any(address in block for block in NO_HOSTS_6)
        )
    return address.is_global and not any(address in block for block in NO_HOSTS_4)
