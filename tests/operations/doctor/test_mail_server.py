from __future__ import annotations

import pytest
from pytest_django.fixtures import Settings

from operations.doctor.mail_server import check_mail
from tests.patience import PATIENCE_S
from tests.programs.mail_server import mail_server
from tests.programs.services import free_port

from .diagnoses import faults, only_fault


@pytest.fixture(autouse=True)
def _smtp(settings: Settings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_TIMEOUT = "127.0.0.1", PATIENCE_S
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
    settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = "user", "password"


def test_a_login_is_tried_and_a_mail_sent_where_somebody_says_whereto(settings: Settings) -> None:
    with mail_server() as server:
        settings.EMAIL_PORT = server.port
        assert faults(check_mail()) == []
        assert server.mails == []
        assert faults(check_mail("ops@example.com")) == []
        (mail,) = server.mails
        assert "To: ops@example.com" in mail
        settings.EMAIL_USE_TLS = True
        level, says = only_fault(check_mail())
        assert (level, "STARTTLS" in says) == ("fail", True)
    settings.EMAIL_PORT = port = free_port()
    assert only_fault(check_mail()) == (
        "fail",
        f"127.0.0.1, port {port}, cannot be used: Connection refused.",
    )
    # Sending none on purpose is no fault.
    settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
    (found,) = check_mail()
    assert (found.level, found.says.startswith("No mails are sent")) == ("ok", True)


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ({"AUTH": "535 no"}, "refuses the user or the password."),
        ({"greeting": "554 go away"}, "cannot be used: 554 go away."),
        ({"RCPT": "550 nobody here"}, "does not take mails to ops@example.com: 550 nobody here."),
    ],
)
def test_what_the_server_refuses_is_a_fault(settings: Settings, answers: dict[str, str], says: str) -> None:
    with mail_server(**answers) as server:
        settings.EMAIL_PORT = server.port
        level, said = only_fault(check_mail("ops@example.com"))
    assert level == "fail"
    assert said.endswith(says)
