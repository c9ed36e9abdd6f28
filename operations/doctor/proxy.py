"""The proxy in front: the service is asked through it, and says what reached it."""

import http.client
import ssl
from collections.abc import Iterator
from urllib.parse import SplitResult

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from core.program.commands import command
from core.program.version import VERSION
from core.request_headers import is_our_host
from serving.mirror import STRANGE, NotOfThisInstallation, SeenRequest, make_ticket, read_answer

from .diagnosis import Diagnosis, fail, ok, warn
from .program import judge_descriptors
from .proxy_headers import ABOUT, Asking, is_direct, judge_forged, judge_headers
from .proxy_socket import check_socket
from .public_address import FORGED, Certificate, Heard, ask

DAY_S = 86_400
BEHIND = "See that the service runs, and that the proxy names its host and port."


def check_proxy(url: SplitResult, *, is_named: bool, silence_s: float) -> Iterator[Diagnosis]:
    """`is_named`: by whoever asks; otherwise it may well be that nothing runs there."""
    try:
        ticket = make_ticket()
    except ImproperlyConfigured:
        fix = f"Start it with `{command('serve')}`, or give this command the SECRET_KEY of the service."
        yield warn(
            ABOUT, "Without a SECRET_KEY, it is impossible to tell whether this installation answers.", fix
        )
        return
    try:
        heard = ask(url, ticket)
        seen = read_answer(ticket, heard.body)
    except (OSError, http.client.HTTPException) as error:
        yield _unreachable(url, error, is_expected=is_named or settings.PRODUCTION)
        return
    except NotOfThisInstallation:
        yield from _certificate(heard.certificate)
        yield _other_answer(url, heard)
        return
    yield ok(ABOUT, f"{url.geturl()} is answered by this installation.")
    yield from _encryption(url, heard)
    yield from _version(seen)
    yield judge_descriptors(seen.open_files)
    sent = Asking(url.scheme, url.hostname or "", heard.own_address)
    yield from judge_headers(sent, seen, is_ours=is_our_host(seen.host))
    if not is_direct(sent, seen):
        yield from _forged(url)
    yield from check_socket(url, silence_s)


def _unreachable(url: SplitResult, error: Exception, *, is_expected: bool) -> Diagnosis:
    address = url.geturl()
    if isinstance(error, ssl.SSLCertVerificationError):
        says = f"The certificate of {address} is not valid: {error.verify_message}."
        return fail(
            ABOUT, says, f"Install one for {url.hostname}, with the certificates between it and its root."
        )
    reason = getattr(error, "strerror", "") or str(error) or type(error).__name__
    says = f"{address} cannot be reached: {reason.rstrip('.')}."
    if is_expected:
        return fail(ABOUT, says, "See that the proxy runs, and that the name and the firewall lead there.")
    fix = f"If it runs, name its address: `{command('doctor --url ADDRESS')}`; else `{command('serve')}`."
    return warn(ABOUT, says, fix)


def _other_answer(url: SplitResult, heard: Heard) -> Diagnosis:
    address = url.geturl()
    if heard.location:
        says = f"{address} sends clients elsewhere, to {heard.location}."
        return fail(ABOUT, says, "Name the address that clients use: --url.")
    if heard.status in (502, 503, 504):
        return fail(ABOUT, f"The proxy at {address} does not reach the service ({heard.status}).", BEHIND)
    if heard.status == 403 and heard.body == STRANGE:
        says = f"{address} leads to another installation of Tickwire, with another SECRET_KEY."
        fix = "Give all processes the same SECRET_KEY and clock, or point the proxy at this installation."
        return fail(ABOUT, says, fix)
    says = f"Something other than Tickwire answers at {address} ({heard.status})."
    return fail(ABOUT, says, BEHIND)


def _encryption(url: SplitResult, heard: Heard) -> Iterator[Diagnosis]:
    if url.scheme == "http" and settings.PRODUCTION:
        says = f"{url.geturl()} has no TLS: keys and passwords cross the network unencrypted."
        yield fail(ABOUT, says, "Let the proxy end TLS, and send http:// to https://.")
    yield from _certificate(heard.certificate)


def _certificate(found: Certificate | None) -> Iterator[Diagnosis]:
    if found is None:
        return
    days = found.left_s / DAY_S
    # Some live for a week and others for a year; each should have been renewed by then.
    if days >= 21 or found.left_s > found.lives_s / 5:
        yield ok(ABOUT, f"Its certificate is valid for {days:,.0f} more days.")
        return
    says = f"Its certificate ends in {days:,.1f} days."
    fix = "Renew it, and find out why that has not happened by itself."
    yield fail(ABOUT, says, fix) if days < 3 else warn(ABOUT, says, fix)


def _version(seen: SeenRequest) -> Iterator[Diagnosis]:
    if seen.version != VERSION:
        says = f"The service runs version {seen.version}, and this command is of {VERSION}."
        yield warn(ABOUT, says, "Restart the service to end the upgrade, or call the command of its version.")


def _forged(url: SplitResult) -> Iterator[Diagnosis]:
    ticket = make_ticket()
    try:
        yield judge_forged(FORGED, read_answer(ticket, ask(url, ticket, forged=True).body))
    except (OSError, http.client.HTTPException, NotOfThisInstallation) as error:
        says = f"A second request to {url.geturl()} failed: {error}."
        yield fail(ABOUT, says, "See whether several services answer there, not all of this installation.")
