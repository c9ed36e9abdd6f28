"""Mails to people: sent in separate threads, so that a mail server that is down or hangs breaks no page, and
only to valid addresses."""

import asyncio
import contextlib
import logging
import time
from queue import Empty, Full, Queue
from threading import Thread
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.models import EmailAddress
from allauth.account.signals import email_added, email_changed, email_confirmed, email_removed
from allauth.core.context import request_context
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.dispatch import Signal
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from prometheus_client import Counter

from accounts.models import Account, User
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent

logger = logging.getLogger(__name__)
THREADS = 2

# At a server that takes EMAIL_TIMEOUT for each, a longer queue delivers mails too late to be of use.
MOST_WAITING = 100

# When the process stops, the last mails have this long.
STOP_WITHIN_S = 3.0
mails_lost = Counter("tickwire_mails_lost", "Mails that could not be sent.", registry=None)


def written(kind: str, email: str, about: dict[str, Any]) -> EmailMessage:
    """The first line of its template is the subject."""
    subject, _, body = render_to_string(f"{kind}.txt", about).strip().partition("\n")
    return EmailMessage(subject, body.strip() + "\n", to=[email])


class MailQueue:
    """If it is not started, as in a command, a mail is sent at once."""

    def __init__(self) -> None:
        self._waiting: Queue[tuple[str, EmailMessage] | None] = Queue(MOST_WAITING)
        self._is_open = False
        self._sending: list[str] = []

    @property
    def unsent(self) -> int:
        """How many mails wait or are being sent."""
        return self._waiting.unfinished_tasks

    def start(self) -> None:
        self._waiting, self._is_open = Queue(MOST_WAITING), True
        for number in range(THREADS):
            # The process does not wait for it at exit, because it may hang.
            Thread(target=self._work, name=f"mail-{number}", daemon=True).start()

    async def stop(self) -> None:
        deadline = time.monotonic() + STOP_WITHIN_S
        while self.unsent and time.monotonic() < deadline:  # noqa: ASYNC110 - threads change it
            await asyncio.sleep(0.02)
        self._is_open = False
        with contextlib.suppress(Empty):
            while job := self._waiting.get_nowait():
                give_up(job[0], "the service stops")
        for kind in list(self._sending):
            give_up(kind, "the service stops before the mail server has taken it")
        for _ in range(THREADS):
            self._waiting.put(None)

    def send(self, kind: str, mail: EmailMessage) -> None:
        if not self._is_open:
            deliver(kind, mail)
            return
        try:
            self._waiting.put_nowait((kind, mail))
        except Full:
            give_up(kind, f"{MOST_WAITING} others wait for the mail server")

    def _work(self) -> None:
        waiting = self._waiting
        while job := waiting.get():
            self._sending.append(job[0])
            deliver(*job)
            self._sending.remove(job[0])
            waiting.task_done()


def deliver(kind: str, mail: EmailMessage) -> None:
    try:
        mail.send()
    except OSError as error:
        give_up(kind, str(error))
    except Exception:  # noqa: BLE001 - the top of a thread, and no page may fail by what its mail holds
        logger.exception("A mail could not be made")
        give_up(kind, "see above")


def give_up(kind: str, why: str) -> None:
    mails_lost.inc()
    logger.error("No mail was sent of %s: %s", kind, why)


outgoing = MailQueue()


# Email addresses, each of which can open an account: each change is kept as an event and mailed to the owner.
KINDS = {
    email_added: EventKind.ADDRESS_ADDED,
    email_confirmed: EventKind.ADDRESS_CONFIRMED,
    email_removed: EventKind.ADDRESS_REMOVED,
    email_changed: EventKind.ADDRESS_PREFERRED,
}
# allauth itself mails about the others.
MAILS = {email_added: "account/email/email_added", email_confirmed: "account/email/email_confirm"}


@transaction.atomic
def publish_change(
    signal: Signal,
    request: HttpRequest,
    email_address: EmailAddress | None = None,
    to_email_address: EmailAddress | None = None,
    **_: Any,
) -> None:
    address = to_email_address or email_address
    assert address is not None  # noqa: S101 - allauth names one of them
    user = address.user
    for account in Account.objects.filter(user_id=user.pk):
        ControlEvent.objects.publish(KINDS[signal], by=user.get_username(), account=account.pk)
    # The mail goes to the primary address, which need not read about itself.
    if signal in MAILS and not address.primary:
        get_adapter(request).send_notification_mail(MAILS[signal], user, {"address": address.email})


# Mails about decisions and other acts of staff.
def address_for_answers(user: User) -> str:
    """Empty if no mail would come: the service sends none, or no address of theirs is confirmed."""
    if not settings.MAILS_ARE_SENT:
        return ""
    confirmed = EmailAddress.objects.filter(user=user, primary=True, verified=True)
    return confirmed.values_list("email", flat=True).first() or ""


def send_answer(request: HttpRequest, user: User, mail: str, *, page: str, **about: object) -> None:
    address = address_for_answers(user)
    if not address:
        return
    context = {**about, "page": request.build_absolute_uri(reverse(page))}
    # The mail names the requesting browser, which allauth reads from a context.
    with request_context(request):
        get_adapter(request).send_notification_mail(mail, user, context, email=address)


def mail_staff_act(request: HttpRequest, user: User, what: str) -> None:
    """`what` is one or more sentences."""
    send_answer(request, user, "settings/email/by_staff", page="events", what=what)
