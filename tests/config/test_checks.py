"""Production does not start with secrets that are none, with every host, or with mails in its log."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django.fixtures import Settings

from config.checks import check_production, refuse_unsafe
from config.environment import read_proxies
from config.environment.values import Environment

ONE, OTHER = "Zq8vT3mXw1LrC9dKfP0yHn5sGbJ7uEaU2iVo4tRk", "pL0wQx7NzB3cYh8GsM5tVd2JfRk9aUe6TiXo1HvC"
THIRD = "R7mXcV2bN9qW4eT6yU8iO1pA3sD5fG0hJkLzQxMw"
SAFE: dict[str, Any] = {
    "PRODUCTION": True,
    "SECRET_KEY": ONE,
    "KEY_PEPPER": OTHER,
    "ALLOWED_HOSTS": ["api.example.com", ".example.org"],
    "CSRF_TRUSTED_ORIGINS": ["https://api.example.com", "https://*.example.com"],
    "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
    "EMAIL_HOST": "mail.example.com",
    "EMAIL_HOST_PASSWORD": "a password",
    "EMAIL_USE_TLS": True,
    "DEFAULT_FROM_EMAIL": "Tickwire <no-reply@tickwire.example>",
}


@pytest.fixture(autouse=True)
def nothing_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("config.redaction.env", Environment({}))


def found(settings: Settings, **changes: Any) -> list[str | None]:
    for name, value in (SAFE | changes).items():
        setattr(settings, name, value)
    return [message.id for message in check_production()]


def test_what_is_safe_is_let_through(settings: Settings) -> None:
    assert found(settings) == []
    refuse_unsafe()


@pytest.mark.parametrize(
    ("changes", "id_"),
    [
        ({"SECRET_KEY": "long and random"}, "tickwire.E002"),
        ({"SECRET_KEY": "a" * 64}, "tickwire.E002"),
        ({"SECRET_KEY": "changeme" * 8}, "tickwire.E002"),
        ({"KEY_PEPPER": "pepper" * 10}, "tickwire.E003"),
        ({"KEY_PEPPER": ONE}, "tickwire.E004"),
        ({"KEY_PEPPER": f"pepper:{ONE}"}, "tickwire.E004"),
        ({"ALLOWED_HOSTS": ["api.example.com", "*"]}, "tickwire.E005"),
        ({"ALLOWED_HOSTS": ["."]}, "tickwire.E005"),
        ({"CSRF_TRUSTED_ORIGINS": ["http://api.example.com"]}, "tickwire.E006"),
        ({"CSRF_TRUSTED_ORIGINS": ["https://*"]}, "tickwire.E006"),
        ({"CSRF_TRUSTED_ORIGINS": ["https://*.com"]}, "tickwire.E006"),
        ({"EMAIL_BACKEND": "django.core.mail.backends.console.EmailBackend"}, "tickwire.E007"),
        *(
            ({"TRUSTED_PROXIES": read_proxies(everybody)}, "tickwire.E008")
            for everybody in ("*", "0.0.0.0/0", "::/0", "10.0.0.5, 0.0.0.0/1, 128.0.0.0/1", "::ffff:0:0/96")
        ),
        ({"SECRET_KEY_FALLBACKS": [ONE]}, "tickwire.E009"),
        ({"SECRET_KEY_FALLBACKS": [THIRD, THIRD]}, "tickwire.E009"),
        ({"KEY_PEPPER_FALLBACKS": [THIRD, OTHER]}, "tickwire.E010"),
        ({"SECRET_KEY_FALLBACKS": ["changeme" * 8]}, "tickwire.E011"),
    ],
    ids=str,
)
def test_what_is_not_is_an_error_that_stops_the_start(
    settings: Settings, changes: dict[str, Any], id_: str
) -> None:
    assert found(settings, **changes) == [id_]
    with pytest.raises(ImproperlyConfigured, match="PRODUCTION=1 does not start like this"):
        refuse_unsafe()


def test_weak_pepper_of_before_is_a_warning_because_it_is_the_way_out(settings: Settings) -> None:
    assert found(settings, KEY_PEPPER_FALLBACKS=["pepper" * 10]) == ["tickwire.W002"]
    refuse_unsafe()


@pytest.mark.parametrize(
    ("changes", "ids"),
    [
        ({"DEFAULT_FROM_EMAIL": "Tickwire <no-reply@localhost>"}, ["tickwire.W003"]),
        ({"DEFAULT_FROM_EMAIL": "Tickwire <no-reply@example.com>"}, ["tickwire.W003"]),
        ({"EMAIL_USE_TLS": False}, ["tickwire.W004"]),
        ({"EMAIL_USE_TLS": False, "EMAIL_USE_SSL": True}, []),
        ({"EMAIL_USE_TLS": False, "EMAIL_HOST": "127.0.0.1"}, []),
        ({"EMAIL_USE_TLS": False, "EMAIL_HOST_PASSWORD": ""}, []),
        ({"MAILS_ARE_SENT": False, "DEFAULT_FROM_EMAIL": "Tickwire <no-reply@localhost>"}, []),
    ],
    ids=str,
)
def test_mails_that_would_hardly_arrive_or_show_a_password_are_warned_of(
    settings: Settings, changes: dict[str, Any], ids: list[str]
) -> None:
    assert found(settings, **changes) == ids
    refuse_unsafe()


@pytest.mark.parametrize(
    ("trusted", "ids"),
    [
        ("10.0.0.5, 172.16.0.0/12, fd00::/64, 2a06:98c0::/29", []),
        ("10.0.0.0/8", ["tickwire.W006"]),
        ("fd00::/8", ["tickwire.W006"]),
    ],
)
def test_network_of_proxies_that_holds_clients_too_is_warned_of(
    settings: Settings, trusted: str, ids: list[str]
) -> None:
    assert found(settings, TRUSTED_PROXIES=read_proxies(trusted)) == ids
    refuse_unsafe()


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("METRICS_TOKEN", "eleven-long"),
        ("DATABASE_URL", "postgresql://tickwire:tiger123@db/tickwire"),
        ("DATABASE_URL", "postgresql://tickwire@db/tickwire?sslpassword=tiger123"),
    ],
)
def test_secret_that_a_line_of_the_log_may_show_is_warned_of(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, name: str, given: str
) -> None:
    monkeypatch.setattr("config.redaction.env", Environment({name: given, "OANDA_TOKEN": "twelve-chars"}))
    assert found(settings) == ["tickwire.W007"]
    assert check_production()[0].msg.startswith(f"{name} has a secret of fewer than 12 characters")
    refuse_unsafe()


def test_good_fallbacks_are_let_through(settings: Settings) -> None:
    assert found(settings, SECRET_KEY_FALLBACKS=[THIRD], KEY_PEPPER_FALLBACKS=[THIRD]) == []


def test_no_message_repeats_a_secret(settings: Settings) -> None:
    found(settings, SECRET_KEY="hunter2hunter2", KEY_PEPPER="hunter2hunter2")
    assert all("hunter2" not in f"{message.msg} {message.hint}" for message in check_production())


def test_a_random_secret_of_hexadecimal_digits_is_long_enough_with_32(settings: Settings) -> None:
    assert found(settings, SECRET_KEY="9f86d081884c7d659a2feaa0c55ad015") == []


def test_outside_production_nobody_asks(settings: Settings) -> None:
    assert found(settings, PRODUCTION=False, SECRET_KEY="x", KEY_PEPPER="x", ALLOWED_HOSTS=["*"]) == []
