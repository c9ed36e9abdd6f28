"""Whose connections are counted together, and whose are not counted."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network

# Who has one address of IPv6 has all those of its network.
NETWORK_BITS = 64


class Groups:
    def __init__(self, trusted: str, *, loopback_counts: bool) -> None:
        names = [name.strip() for name in trusted.split(",") if name.strip()]
        self._all_trusted = "*" in names
        self._trusted = [ip_network(name, strict=False) for name in names if is_network(name)]
        self._loopback_counts = loopback_counts
        self.of = lru_cache(maxsize=4096)(self._of)

    def _of(self, host: str) -> str:
        """What is counted for this host; empty where nothing is."""
        if self._all_trusted:
            return ""
        try:
            address = ip_address(host.partition("%")[0])
        except ValueError:
            # The name of a socket in the file system.
            return ""
        if isinstance(address, IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        if address.is_loopback and not self._loopback_counts:
            return ""
        if any(address in network for network in self._trusted):
            return ""
        if isinstance(address, IPv6Address):
            return str(ip_network((address, NETWORK_BITS), strict=False))
        return str(address)


def is_network(name: str) -> bool:
    try:
        ip_network(name, strict=False)
    except ValueError:
        return False
    return True
