"""The mail server: it is connected to and logged in to, and nothing is sent unless somebody says whereto."""

import smtplib
from collections.abc import Iterator

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.smtp import EmailBackend

from .diagnosis import Diagnosis, fail, ok

ABOUT = "mail"
SUBJECT = "A test mail of Tickwire"
BODY = "`doctor` was asked to send this. If you can read this, mails reach you."
FIX = "Check EMAIL_URL, and that this machine may reach the mail server."


def check_mail(send_to: str = "") -> Iterator[Diagnosis]:
    connection = get_connection()
    if not isinstance(connection, EmailBackend):
        yield _without_server()
        return
    server = f"{connection.host}, port {connection.port}"
    try:
        connection.open()
        if send_to:
            EmailMessage(SUBJECT, BODY, to=[send_to], connection=connection).send()
    except smtplib.SMTPAuthenticationError:
        yield fail(ABOUT, f"{server}, refuses the user or the password.", "Check both in EMAIL_URL.")
    except smtplib.SMTPRecipientsRefused as error:
        reasons = "; ".join(f"{code} {_text(said)}" for code, said in error.recipients.values())
        yield fail(ABOUT, f"{server}, does not take mails to {send_to}: {reasons}.", "Name another address.")
    except (smtplib.SMTPException, OSError) as error:
        yield fail(ABOUT, f"{server}, cannot be used: {_reason(error)}.", FIX)
    else:
        yield _in_order(server, send_to, has_user=bool(connection.username))
    finally:
        connection.close()


def _without_server() -> Diagnosis:
    backend = settings.EMAIL_BACKEND.split(".")[-2]
    if backend == "dummy":
        # Whoever names it has decided so.
        return ok(ABOUT, "No mails are sent (dummymail), and the pages that need them are closed.")
    return ok(ABOUT, f"Mails go to no server ({backend}), which production refuses.")


def _in_order(server: str, send_to: str, *, has_user: bool) -> Diagnosis:
    if send_to:
        return ok(ABOUT, f"{server}, took a mail to {send_to}. Check whether it arrives.")
    return ok(ABOUT, f"{server}, {'accepts the login' if has_user else 'answers'}. Nothing was sent.")


def _reason(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{error.smtp_code} {_text(error.smtp_error)}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).rstrip(".") or type(error).__name__


def _text(said: bytes | str) -> str:
    return said.decode(errors="replace") if isinstance(said, bytes) else said
