"""allauth's adapters: how people log in, and how the secrets of second factors are stored.

Against guessing, 5 failures lock an address and an account together, and 100 an hour the account's
password. A device that has logged in to it before, a passkey and a mailed link still open it."""

import base64
import logging
import secrets
from typing import Any, ClassVar

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.email_verification import get_address_for_login
from allauth.account.internal.flows.password_reset import get_reset_password_url
from allauth.account.internal.userkit import filter_users_by_email, get_user_by_username
from allauth.account.stages import EmailVerificationStage
from allauth.account.utils import has_verified_email
from allauth.core import context as current
from allauth.core.internal import ratelimit
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from cryptography.fernet import InvalidToken
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.signing import BadSignature, TimestampSigner
from django.http import HttpRequest, HttpResponseBase

from accounts.models import RESERVED, User, fault_of_new, look_of
from core.addresses import network_of
from core.encryption import seal, unseal

from .mails import outgoing, written


class ConfirmAddress(EmailVerificationStage):  # type: ignore[misc]
    """Superusers are not asked to confirm an address. They come from the command line, whose user may do
    anything, or from another superuser; and on an installation without mail they could never log in."""

    def handle(self) -> tuple[HttpResponseBase | None, bool]:
        user = self.login.user
        if user is None or not user.is_superuser:
            answer: tuple[HttpResponseBase | None, bool] = super().handle()
            return answer
        # Otherwise it would block a second factor.
        if not has_verified_email(user) and (address := get_address_for_login(self.login)):
            address.set_verified()
        return None, True


# Common names of browsers, by a word in their User-Agent. The first match counts, because most also claim to
# be later ones.
BROWSERS = {
    "Edg": "Edge",
    "OPR/": "Opera",
    "SamsungBrowser/": "Samsung Internet",
    "Firefox/": "Firefox",
    "FxiOS/": "Firefox",
    "Chrome/": "Chrome",
    "CriOS/": "Chrome",
    "Safari/": "Safari",
}
SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "CrOS": "ChromeOS",
    "Windows": "Windows",
    "Mac OS X": "macOS",
    "Linux": "Linux",
}
UNKNOWN = "Unknown client"
LONGEST = 80


def browser_name(agent: str) -> str:
    """Such as "Chrome on Linux". Other programs keep the name that they give."""
    if not agent.startswith("Mozilla/"):
        return agent[:LONGEST] or UNKNOWN
    browser = next((name for mark, name in BROWSERS.items() if mark in agent), UNKNOWN)
    system = next((name for mark, name in SYSTEMS.items() if mark in agent), "")
    return f"{browser} on {system}" if system else browser


APP = "allauth.account"

# The names of these limits in the settings.
PAIR, ACCOUNT = "login_failed", "login_failed_of_account"
COOKIE, KNOWN_FOR_S = "known_device", 180 * 86_400


def login_name_of(credentials: dict[str, Any]) -> str:
    """The same for an account's name and its addresses; unknown names are counted in the same way."""
    login = str(credentials.get("email") or credentials.get("username") or "").strip().lower()
    # Always query both, or the time taken reveals whose name it is.
    named: User | None = get_user_by_username(login)
    mailed = next(iter(filter_users_by_email(login, prefer_verified=True, for_login=True)), None)
    found = named or mailed
    return f"name {login}" if found is None else f"user {found.pk}"


def device_of(request: HttpRequest, account: str) -> str | None:
    """Read from the cookie that the device received at a login to this account."""
    try:
        text = _device_signer().unsign(request.COOKIES.get(COOKIE, ""), max_age=KNOWN_FOR_S)
    except BadSignature:
        return None
    owner, _, name = text.partition(" ")
    return name if account == f"user {owner}" else None


def limits_of(request: HttpRequest, account: str) -> list[tuple[str, str]]:
    """The pair comes first: an attempt that it locks out uses up nothing of the account's limit."""
    network = network_of(request.META.get("REMOTE_ADDR") or "")
    return [(PAIR, f"{network} {account}"), (ACCOUNT, account)]


def admit_attempt(request: HttpRequest, credentials: dict[str, Any]) -> list[Any]:
    """The counts of this attempt, to be rolled back if it succeeds. Empty if the attempt is refused."""
    account = login_name_of(credentials)
    device = device_of(request, account)
    limits = limits_of(request, account) if device is None else [(PAIR, f"device {device} {account}")]
    counted = []
    for action, key in limits:
        used = ratelimit.consume(request=request, app=APP, action=action, key=key)
        if not used:
            return []
        counted.append(used)
    return counted


def forget_attempts(request: HttpRequest, credentials: dict[str, Any]) -> None:
    """After a new password was set by a mailed link."""
    for action, key in limits_of(request, login_name_of(credentials)):
        ratelimit.clear(request=request, app=APP, action=action, key=key)


def remember_device(response: HttpResponseBase, user: User) -> None:
    response.set_cookie(
        COOKIE,
        _device_signer().sign(f"{user.pk} {secrets.token_urlsafe(16)}"),
        max_age=KNOWN_FOR_S,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _device_signer() -> TimestampSigner:
    return TimestampSigner(salt="accounts.known_device")


logger = logging.getLogger(__name__)


# The service's own names are in settings.py.
OFFICIAL = {"admin", "administrator", "moderator", "official", "root", "security", "webmaster"}
MISMATCH = "The username or email and the password do not match."


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    error_messages: ClassVar[dict[str, Any]] = DefaultAccountAdapter.error_messages | {
        "too_many_passwords": "Too many attempts failed. Wait a quarter of an hour, log in with a"
        " passkey, or let us mail you a link to a new password.",
        "too_many_login_attempts": "Too many attempts failed. Wait a quarter of an hour, then try again.",
        "username_password_mismatch": MISMATCH,
        "email_password_mismatch": MISMATCH,
        "username_blacklisted": RESERVED,
    }

    def clean_username(self, username: str, shallow: bool = False) -> str:
        """A name must not be or look like a publisher's, nor look like staff."""
        cleaned: str = super().clean_username(username, shallow=shallow)
        if fault := fault_of_new(cleaned):
            raise ValidationError(fault)
        if look_of(cleaned) in map(look_of, OFFICIAL):
            raise ValidationError(RESERVED)
        return cleaned

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        self._counted = admit_attempt(request, credentials)
        if not self._counted:
            raise self.validation_error("too_many_passwords")

    def _rollback_login_failed_rl_usage(self) -> None:
        for used in self._counted:
            used.rollback()

    def _delete_login_attempts_cached_email(self, request: HttpRequest, **credentials: Any) -> None:
        forget_attempts(request, credentials)

    def post_login(self, request: HttpRequest, user: Any, **how: Any) -> HttpResponseBase:
        response: HttpResponseBase = super().post_login(request, user, **how)
        remember_device(response, user)
        return response

    def get_login_stages(self) -> list[str]:
        own = f"{ConfirmAddress.__module__}.{ConfirmAddress.__name__}"
        stages: list[str] = super().get_login_stages()
        return [own if stage.endswith(".EmailVerificationStage") else stage for stage in stages]

    def get_reauthentication_methods(self, user: Any) -> list[dict[str, Any]]:
        """People with a second factor confirm with it: the password alone must not remove it."""
        methods: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        if not user.is_authenticated:
            return methods
        stronger = [method for method in methods if method["id"] != "reauthenticate"]
        has_app = Authenticator.objects.filter(user=user, type=Authenticator.Type.TOTP).exists()
        # The first one is asked for; a passkey comes last from allauth.
        return (stronger if has_app else stronger[::-1]) or methods

    def send_notification_mail(
        self, template_prefix: str, user: Any, context: dict[str, Any] | None = None, email: str | None = None
    ) -> None:
        browser = browser_name(self.get_http_user_agent(self.request))
        about = {"user": user, "browser": browser, **(context or {})}
        super().send_notification_mail(template_prefix, user, about, email)

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """As in allauth, but with our texts, sent by a thread of the mail queue."""
        about = {"email": email, "password_reset_url": get_reset_password_url(current.request), **context}
        outgoing.send(template_prefix, written(template_prefix, email, about))


class FactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    error_messages: ClassVar[dict[str, Any]] = DefaultMFAAdapter.error_messages | {
        "incorrect_code": "The code is wrong, too old or was used before. Try the next one.",
        "unverified_email": "Confirm your email address first, on the page Email: without it you could be"
        " locked out of your own account.",
        "add_email_blocked": "An address can be added only while there is no second factor.",
    }

    def encrypt(self, text: str) -> str:
        return seal(text)

    def decrypt(self, encrypted_text: str) -> str:
        try:
            return unseal(encrypted_text)
        except InvalidToken:
            logger.error("A second factor cannot be read: neither KEY_PEPPER nor a fallback of it sealed it")
            # A random secret, so that no code is right.
            return base64.b32encode(secrets.token_bytes(20)).decode()

    def generate_authenticator_name(self, user: Any, type: Any) -> str:  # noqa: A002 - allauth's name
        number = user.authenticator_set.filter(type=type).count() + 1
        return "Passkey" if number == 1 else f"Passkey {number}"
