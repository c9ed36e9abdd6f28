"""Addresses of feeds and of the stories in them."""

import re
from hashlib import sha256
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import httpx2


# The digests by which stories and drafts are recognised.
def digest(text: str) -> str:
    """Also of text that a feed has broken: half of a surrogate pair cannot be encoded otherwise."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


LONGEST = 500
SCHEMES = {"http": 80, "https": 443}
PORTS = (80, 443, 8080, 8443)
# Parameters that only say how a reader came to a story.
TRACKING = re.compile(
    r"utm_.*|(fb|g|ms|tw|dc|wb)clid|gclsrc|mc_[ce]id|_hsenc|_hsmi|igshid|ito|cmpid|cmp|ncid|smid|taid|"
    r"guccounter|guce_.*|at_(medium|campaign|custom\d?)|ref(_src|errer)?|rss|partner|ocid|sr_share|__twitter_.*"
)


class AddressRefused(Exception):
    """No feed is fetched from this address; the message says why."""


def read_feed_address(text: str, *, any_port: bool = False) -> httpx2.URL:
    """Checks the text of an address; the address of its host is checked when it is fetched."""
    if len(text) > LONGEST:
        raise AddressRefused(f"the address is longer than {LONGEST} characters")
    try:
        url = httpx2.URL(text)
    except (httpx2.InvalidURL, ValueError):
        raise AddressRefused("the address cannot be read") from None
    if url.scheme not in SCHEMES or not url.host:
        raise AddressRefused("a feed's address starts with https:// or http://")
    if url.userinfo:
        raise AddressRefused("a name or password in the address is never sent: leave it out")
    port = url.port or SCHEMES[url.scheme]
    if port not in PORTS and not any_port:
        raise AddressRefused(f"port {port} is none of {', '.join(map(str, PORTS))}")
    return url.copy_with(fragment=None)


def read_story_address(link: str, feed_address: str) -> str:
    """The absolute address of a story; empty for incomplete addresses and for scripts."""
    if not link.strip():
        return ""
    try:
        address = urljoin(feed_address, link.strip())
        parts = urlsplit(address)
    except ValueError:
        return ""
    is_fit = parts.scheme in SCHEMES and parts.hostname and not parts.username and len(address) <= LONGEST
    return address if is_fit and address.isprintable() and " " not in address else ""


def story_key(address: str) -> str:
    """The same for all addresses of a story, because tracking parameters are left out."""
    if not address:
        return ""
    parts = urlsplit(address)
    host = (parts.hostname or "").removeprefix("www.")
    kept = sorted(
        pair for pair in parse_qsl(parts.query, keep_blank_values=True) if not TRACKING.fullmatch(pair[0])
    )
    return digest(f"{host}{parts.path.rstrip('/')}?{urlencode(kept)}")
