"""Which addresses of the network a feed may live at: those that anybody can reach, and no others."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

AnyAddress = IPv4Address | IPv6Address

# What Python calls global and is not a host of the internet: the old relays between IPv4 and IPv6.
NO_HOSTS_4 = (ip_network("192.88.99.0/24"),)
UNICAST_6 = ip_network("2000::/3")
# Teredo and its neighbours, 6to4, documentation: an IPv4 address may hide inside, or nothing at all.
NO_HOSTS_6 = tuple(ip_network(block) for block in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))


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
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not any(address in block for block in NO_HOSTS_4)
    )
