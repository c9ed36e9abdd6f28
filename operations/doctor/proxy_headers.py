"""What a request looked like behind the proxy, against what it was: pure."""

from collections.abc import Iterator
from ipaddress import ip_address
from typing import NamedTuple

from serving.mirror import SeenRequest

from .diagnosis import Diagnosis, fail, ok, warn

ABOUT = "proxy"
FOR = (
    "nginx: proxy_set_header X-Forwarded-For $remote_addr; "
    "HAProxy: http-request set-header X-Forwarded-For %[src]"
)
SEND_FOR = f"Let the proxy send the client's address in X-Forwarded-For ({FOR})."
OVERWRITE = f"Let the proxy overwrite the X-Forwarded-For of a client ({FOR})."
PROTO = "nginx: proxy_set_header X-Forwarded-Proto $scheme"
SEND_PROTO = f"Let the proxy send X-Forwarded-Proto: https ({PROTO})."
KEEP_HOST = "Let the proxy pass on the Host that the client named (nginx: proxy_set_header Host $host)."


class Asking(NamedTuple):
    """The request as it was sent."""

    scheme: str
    host: str
    own_address: tuple[str, int]


def is_direct(sent: Asking, seen: SeenRequest) -> bool:
    """The very connection that we opened ends at the service."""
    return (plain(seen.client), seen.port) == (plain(sent.own_address[0]), sent.own_address[1])


def judge_headers(sent: Asking, seen: SeenRequest, *, is_ours: bool) -> Iterator[Diagnosis]:
    """`is_ours`: whether ALLOWED_HOSTS has the host that was seen."""
    if is_direct(sent, seen):
        yield ok(ABOUT, "There is no proxy between this machine and the service.")
        return
    yield judge_client(sent, seen)
    yield from _judge_scheme(sent, seen)
    if not is_ours:
        says = f"The proxy turns the Host {sent.host} into {seen.host or 'none'}, which ALLOWED_HOSTS lacks."
        yield fail(ABOUT, says, KEEP_HOST)
    elif seen.host.partition(":")[0] != sent.host:
        says = f"The proxy turns the Host {sent.host} into {seen.host}, and links in mails will name that."
        yield warn(ABOUT, says, KEEP_HOST)


def judge_client(sent: Asking, seen: SeenRequest, about: str = ABOUT) -> Diagnosis:
    client = plain(seen.client)
    if seen.forwarded_for:
        if client in [plain(part) for part in seen.forwarded_for.split(",")]:
            return ok(about, f"The service sees clients by their own addresses: this machine is {client}.")
        says = f"The service takes the proxy at {client} for the client, because it does not trust it."
        return fail(about, says, f"Set TRUSTED_PROXIES={client} for the service.")
    # The service itself speaks no TLS, so somebody stands in front, who does not say for whom.
    if sent.scheme == "https" or not _is_of_the_internet(client):
        says = f"All clients seem to come from {client}, the proxy, and share the limits of one address."
        return fail(about, says, SEND_FOR)
    return ok(about, f"The service sees this machine as {client}.")


def _judge_scheme(sent: Asking, seen: SeenRequest) -> Iterator[Diagnosis]:
    if sent.scheme != "https":
        return
    if seen.scheme == "https":
        yield ok(ABOUT, "The service knows that its clients use TLS.")
    elif seen.forwarded_proto == "https":
        says = "The service does not trust the proxy's X-Forwarded-Proto, and redirects clients in circles."
        yield fail(ABOUT, says, "Set TRUSTED_PROXIES for the service to the address of the proxy.")
    else:
        said = f"says {seen.forwarded_proto}" if seen.forwarded_proto else "is missing"
        says = f"X-Forwarded-Proto {said}, so pages redirect clients in circles."
        yield fail(ABOUT, says, SEND_PROTO)


def judge_forged(forged: str, seen: SeenRequest) -> Diagnosis:
    if seen.forwarded_for.strip() == forged:
        says = "The proxy passes on the X-Forwarded-For of a client, who can so choose an address."
        return fail(ABOUT, says, OVERWRITE)
    if plain(seen.client) == forged:
        says = (
            "A client can choose the address that the service sees: TRUSTED_PROXIES has the client in it too."
        )
        return fail(ABOUT, says, f"Name nothing but the address of the proxy there. {OVERWRITE}")
    return ok(ABOUT, "A client cannot choose the address that the service sees.")


def _is_of_the_internet(client: str) -> bool:
    try:
        return ip_address(client).is_global
    except ValueError:
        # A socket in the file system has no address.
        return False


def plain(address: str) -> str:
    """Without port, brackets and the IPv6 form of an IPv4 address."""
    text = address.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    return text.removeprefix("::ffff:")
