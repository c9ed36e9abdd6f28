"""From where somebody calls. A trusted proxy's word is in the scope already: the server has put it there."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Any


def address_of(scope: dict[str, Any]) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """Who has one IPv6 address has 2^64 of them."""
    try:
        found = ip_address(address)
    except ValueError:
        return "unknown"
    if found.version == 6 and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return str(found) if found.version == 4 else str(ip_network((int(found), 64), strict=False))
