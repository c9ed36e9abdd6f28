"""Asks a server for a feed: a bounded answer, in a bounded time, from an address that is public."""

import asyncio
import socket
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import httpx2

from core.http import PLAIN, HttpFailed, bounded, encoding, open_client, read_raw, retry_after_s, tls
from news.addresses import SCHEMES, AddressRefused, read_feed_address

from .parsing import MAX_BYTES, FetchedFeed, NoFeed

TIMEOUT_S = 20.0
CONNECT_S = 5.0
MAX_HOPS = 5

# A name may have many addresses; the first ones are tried.
MOST_TRIED = 3
LONGEST_VALIDATOR = 300

# Accepted here and unpacked where feeds are parsed (parsing_process.py).
GZIP = frozenset(("gzip", "x-gzip"))
REDIRECTS = (301, 302, 303, 307, 308)
ASKS = {
    "User-Agent": "Tickwire/1 (news feeds)",
    "Accept": "application/rss+xml, application/atom+xml, application/rdf+xml, application/xml, text/xml",
    "Accept-Encoding": "gzip",
}


AnyAddress = IPv4Address | IPv6Address


class Fetcher:
    """`allow_loopback` is for tests, whose servers stand there on any port."""

    def __init__(self, *, allow_loopback: bool = False, timeout_s: float = TIMEOUT_S) -> None:
        self._allow_loopback = allow_loopback
        self._timeout_s = timeout_s

    async def fetch(self, address: str, etag: str = "", modified: str = "") -> FetchedFeed | None:
        """None if nothing is new since the validators were issued."""
        validators = {"If-None-Match": etag, "If-Modified-Since": modified}
        headers = ASKS | {name: value for name, value in validators.items() if value}
        await asyncio.to_thread(tls, trust_env=False)
        client = open_client(
            headers=headers,
            # A proxy of the environment would connect where we cannot check.
            trust_env=False,
            timeout=httpx2.Timeout(TIMEOUT_S, connect=CONNECT_S),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )
        try:
            async with bounded(self._timeout_s), client:
                return await self._follow(client, address)
        except (AddressRefused, HttpFailed) as error:
            raise NoFeed(str(error)) from None

    async def _follow(self, client: httpx2.AsyncClient, address: str) -> FetchedFeed | None:
        for _ in range(MAX_HOPS + 1):
            url = read_feed_address(address, any_port=self._allow_loopback)
            answer = await self._ask(client, url)
            if not isinstance(answer, str):
                return answer
            address = str(url.join(answer))
        raise NoFeed(f"it redirects more than {MAX_HOPS} times")

    async def _ask(self, client: httpx2.AsyncClient, url: httpx2.URL) -> FetchedFeed | str | None:
        """The feed if it is new, or the address that it redirects to."""
        failed: httpx2.ConnectError | httpx2.ConnectTimeout | None = None
        for host in (await self._resolve(url))[:MOST_TRIED]:
            try:
                return await self._ask_at(client, host, url)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failed = error
        raise failed or NoFeed(f"{url.host} has no address")

    async def _ask_at(
        self, client: httpx2.AsyncClient, host: AnyAddress, url: httpx2.URL
    ) -> FetchedFeed | str | None:
        # Connect to the address that was checked, under the original name: a second look-up could differ.
        async with client.stream(
            "GET",
            url.copy_with(host=str(host)),
            headers={"Host": url.netloc.decode("ascii")},
            extensions={"sni_hostname": url.raw_host.decode("ascii")},
        ) as response:
            status = response.status_code
            if status in REDIRECTS and "Location" in response.headers:
                return response.headers["Location"]
            if status == 304:
                return None
            if status != 200:
                raise NoFeed(f"the answer was {status}", retry_after_s(response))
            return FetchedFeed(
                await read_raw(response, MAX_BYTES, encodings=PLAIN | GZIP),
                response.headers.get("Content-Type", ""),
                str(url),
                encoding(response) in GZIP,
                validator(response, "ETag"),
                validator(response, "Last-Modified"),
            )

    async def _resolve(self, url: httpx2.URL) -> list[AnyAddress]:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(url.host, url.port or SCHEMES[url.scheme], type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise NoFeed(f"{url.host} cannot be found") from None
        hosts = [host for *_, place in found if (host := read_address(str(place[0]))) is not None]
        # A single address that is not public is enough to refuse: nobody publishes such a name by mistake.
        if not hosts or not all(self._may_ask(host) for host in hosts):
            raise AddressRefused(f"{url.host} leads to an address that is not public")
        return hosts

    def _may_ask(self, host: AnyAddress) -> bool:
        return is_public(host) or (self._allow_loopback and host.is_loopback)


def validator(response: httpx2.Response, name: str) -> str:
    """A validator, which is sent back unchanged next time; one that cannot be stored is dropped."""
    value: str = response.headers.get(name, "")
    return value if len(value) <= LONGEST_VALIDATOR and value.isascii() and value.isprintable() else ""


# All of IANA's registry of special-purpose addresses, whether or not they are globally reachable and this
# version of Python knows them: no publisher has a feed there.
NO_HOSTS_4 = tuple(
    ip_network(block)
    for block in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24"),
        *("192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
        *("224.0.0.0/4", "240.0.0.0/4"),
        # Azure serves its own machines their certificates and settings here.
        "168.63.129.16/32",
    )
)
UNICAST_6 = ip_network("2000::/3")

# Teredo and its neighbours, 6to4, documentation, the anycast of AS112, SRv6: these may embed an IPv4 address
# or lead nowhere.
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
