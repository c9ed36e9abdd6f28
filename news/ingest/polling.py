"""Polls the sources that are due, from the request to the drafts, and records what goes wrong.

However many processes there are, the one that moves the next poll of a source forward polls it."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple

import httpx2
from django.conf import settings
from django.db.models import F
from django.utils import timezone

from core.background import BackgroundLoop, cancel_and_wait
from core.database import UNANSWERED
from core.fault_log import LastingFault
from core.http import PLAIN, HttpFailed, bounded, encoding, open_client, read_raw, retry_after_s, tls
from core.threads import in_thread, run_in
from news.addresses import SCHEMES, AddressRefused, read_feed_address
from news.models import Source
from news.scoring import Scorer, score_title, scoring_threads

from . import intake
from .intake import FeedReading, Judged
from .parsing import MAX_BYTES, FetchedFeed, NoFeed
from .parsing_process import read_apart

# Asks a server for a feed: a bounded answer, in a bounded time, from an address that is public.
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
        # A single address that is not public is enough to refuse: such a name is not published by mistake.
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


logger = logging.getLogger(__name__)
LOOK_S = 5.0
# Few at a time, so that a slow server holds up few others, and many sources do not use up the API's threads.
AT_ONCE = 4
# If the process that claimed a source dies, the source is free again after this.
CLAIM = timedelta(minutes=2)
# A poll may take any time, as it waits for threads, a model and the database, so it renews its claim.
RENEW_S = 30.0
# A server may ask clients to stay away for any length of time; we heed at most a day.
LONGEST = timedelta(hours=24)
MOST_DOUBLINGS = 12
UNCHANGED = "nothing new"
ANOTHER = "another poll has claimed it in the meantime and takes what is new"


def polling_loop() -> BackgroundLoop:
    return BackgroundLoop(
        "news sources",
        poll_due,
        fault=LastingFault(logger, "The news wait for the database"),
        broke="Polling the news broke and goes on",
        passing=UNANSWERED,
        again=LOOK_S,
    )


async def poll_due() -> None:
    claimed = await in_thread(claim_due, timezone.now(), AT_ONCE)
    await asyncio.gather(*(poll(source) for source in claimed))
    if len(claimed) < AT_ONCE:
        await asyncio.sleep(LOOK_S)


def claim_due(now: datetime, most: int) -> list[Source]:
    due = list(Source.objects.due(now)[:most])
    return [source for source in due if claim(source, now)]


def claim(source: Source, now: datetime) -> bool:
    """Only one of the processes that saw it due updates the row. A claim is renewed in the same way."""
    seen = Source.objects.filter(pk=source.pk, next_poll_at=source.next_poll_at)
    if seen.update(next_poll_at=now + CLAIM) == 0:
        return False
    source.next_poll_at = now + CLAIM
    return True


Renew = Callable[[], Awaitable[bool]]


@asynccontextmanager
async def renewed_claim(source: Source, renew_s: float) -> AsyncIterator[Renew]:
    """Keeps the claim on a source for as long as its poll takes. Yields a function that renews it at once and
    returns whether it was still ours."""
    # Two renewals at once would each mistake the other for another process's claim.
    turn = asyncio.Lock()

    async def renew() -> bool:
        async with turn:
            return await in_thread(claim, source, timezone.now())

    async def keep_renewing() -> None:
        is_ours = True
        while is_ours:
            await asyncio.sleep(renew_s)
            try:
                is_ours = await renew()
            except UNANSWERED as error:
                logger.warning("The claim on %s could not be renewed now: %s", source, error)

    task = asyncio.create_task(keep_renewing(), name=f"claim of {source.pk}")
    try:
        yield renew
    finally:
        await cancel_and_wait(task)


class Polled(NamedTuple):
    outcome: str = ""
    problem: str = ""

    def __str__(self) -> str:
        return self.problem or self.outcome


async def poll(
    source: Source, scorer: Scorer = score_title, fetcher: Fetcher | None = None, renew_s: float = RENEW_S
) -> Polled:
    """Expects a source that this process has claimed."""
    now = timezone.now()
    try:
        async with renewed_claim(source, renew_s) as renew:
            fetcher = fetcher or Fetcher(allow_loopback=settings.NEWS_FEEDS_ON_LOOPBACK)
            fetched = await fetcher.fetch(source.address, source.etag, source.modified)
            if fetched is not None:
                return await _take(source, renew, fetched, now, scorer)
            await in_thread(note_success, source, now, UNCHANGED, source.etag, source.modified)
            return Polled(UNCHANGED)
    except NoFeed as error:
        return await _failed(source, now, str(error), error.retry_after_s)
    except UNANSWERED as error:
        logger.warning("The news of %s wait for the database: %s", source, error)
        return Polled(problem="the database did not answer")
    except Exception as error:  # noqa: BLE001 - the top of a poll: a fault of one source must not stop the others
        logger.exception("Polling %s broke", source)
        return await _failed(source, now, f"a fault of our own ({type(error).__name__}); the log has more")


async def _take(source: Source, renew: Renew, fetched: FetchedFeed, now: datetime, scorer: Scorer) -> Polled:
    reading = await in_thread(intake.read, source, await read_apart(fetched), now)
    # Checked before scoring, which would otherwise be paid for twice.
    if reading.to_judge and not await renew():
        return Polled(problem=ANOTHER)
    judged = await run_in(scoring_threads, intake.judge, source, reading, scorer)
    return Polled(await in_thread(_store, source, reading, judged, fetched, now))


def _store(
    source: Source, reading: FeedReading, judged: Sequence[Judged], fetched: FetchedFeed, now: datetime
) -> str:
    outcome = str(intake.store(source, reading, judged)) or UNCHANGED
    # Only after the intake: had that failed, the validators would hide the same feed next time.
    note_success(source, now, outcome, fetched.etag, fetched.modified)
    return outcome


async def _failed(source: Source, now: datetime, reason: str, retry_after_s: int = 0) -> Polled:
    try:
        await in_thread(note_failure, source, now, reason, retry_after_s)
    except UNANSWERED as error:
        logger.warning("What is wrong with %s could not be noted: %s", source, error)
    return Polled(problem=reason)


def note_success(source: Source, now: datetime, outcome: str, etag: str, modified: str) -> None:
    # Only the fields that polling owns: staff may be editing the rest.
    Source.objects.filter(pk=source.pk).update(
        etag=etag,
        modified=modified,
        polled_at=now,
        next_poll_at=now + pause(source.interval_s, failures=0),
        failures=0,
        last_error="",
        outcome=outcome[:200],
    )


def note_failure(source: Source, now: datetime, reason: str, retry_after_s: int) -> None:
    Source.objects.filter(pk=source.pk).update(
        polled_at=now,
        next_poll_at=now + pause(source.interval_s, source.failures + 1, retry_after_s),
        failures=F("failures") + 1,
        last_error=f"{reason[:1].upper()}{reason[1:299]}",
    )


def pause(interval_s: int, failures: int, retry_after_s: int = 0) -> timedelta:
    """The interval, doubled with each failure in a row up to a day, but at least what the server asks for."""
    delay = timedelta(seconds=interval_s)
    if failures:
        delay = max(delay, min(delay * 2 ** min(failures, MOST_DOUBLINGS), LONGEST))
    return max(delay, min(timedelta(seconds=retry_after_s), LONGEST))
