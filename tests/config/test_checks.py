"""Production does not start with secrets that are none, with every host, or with mails in its log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django.fixtures import Settings

from config.checks import check_deployment, check_production, refuse_unsafe
from config.environment import Environment
from config.environment.kinds import read_proxies

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
LOCAL = "Tickwire <no-reply@localhost>"
# An error stops the start, a warning does not.
FOUND: list[tuple[dict[str, Any], str]] = [
    ({}, ""),
    # A random secret of hexadecimal digits is long enough with 32.
    ({"SECRET_KEY": "9f86d081884c7d659a2feaa0c55ad015"}, ""),
    *(({"SECRET_KEY": weak}, "E002") for weak in ("long and random", "a" * 64, "changeme" * 8)),
    ({"KEY_PEPPER": "pepper" * 10}, "E003"),
    *(({"KEY_PEPPER": same}, "E004") for same in (ONE, f"pepper:{ONE}")),
    *(({"ALLOWED_HOSTS": hosts}, "E005") for hosts in (["api.example.com", "*"], ["."])),
    *(
        ({"CSRF_TRUSTED_ORIGINS": [origin]}, "E006")
        for origin in ("http://api.example.com", "https://*", "https://*.com")
    ),
    ({"EMAIL_BACKEND": "django.core.mail.backends.console.EmailBackend"}, "E007"),
    *(
        ({"TRUSTED_PROXIES": read_proxies(everybody)}, "E008")
        for everybody in ("*", "0.0.0.0/0", "::/0", "10.0.0.5, 0.0.0.0/1, 128.0.0.0/1", "::ffff:0:0/96")
    ),
    # Networks that hold clients, too.
    *(({"TRUSTED_PROXIES": read_proxies(network)}, "W006") for network in ("10.0.0.0/8", "fd00::/8")),
    ({"TRUSTED_PROXIES": read_proxies("10.0.0.5, 172.16.0.0/12, fd00::/64, 2a06:98c0::/29")}, ""),
    *(({"SECRET_KEY_FALLBACKS": twice}, "E009") for twice in ([ONE], [THIRD, THIRD])),
    ({"KEY_PEPPER_FALLBACKS": [THIRD, OTHER]}, "E010"),
    ({"SECRET_KEY_FALLBACKS": ["changeme" * 8]}, "E011"),
    # A weak pepper of before is the way out.
    ({"KEY_PEPPER_FALLBACKS": ["pepper" * 10]}, "W002"),
    ({"SECRET_KEY_FALLBACKS": [THIRD], "KEY_PEPPER_FALLBACKS": [THIRD]}, ""),
    # Mails that would hardly arrive, or show a password.
    *(({"DEFAULT_FROM_EMAIL": sender}, "W003") for sender in (LOCAL, "Tickwire <no-reply@example.com>")),
    ({"MAILS_ARE_SENT": False, "DEFAULT_FROM_EMAIL": LOCAL}, ""),
    ({"EMAIL_USE_TLS": False}, "W004"),
    ({"EMAIL_USE_TLS": False, "EMAIL_USE_SSL": True}, ""),
    ({"EMAIL_USE_TLS": False, "EMAIL_HOST": "127.0.0.1"}, ""),
    ({"EMAIL_USE_TLS": False, "EMAIL_HOST_PASSWORD": ""}, ""),
    ({"PRODUCTION": False, "SECRET_KEY": "x", "KEY_PEPPER": "x", "ALLOWED_HOSTS": ["*"]}, ""),
]


@pytest.fixture(autouse=True)
def nothing_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("config.logging.env", Environment({}))


def found(settings: Settings, **changes: Any) -> list[str | None]:
    for name, value in (SAFE | changes).items():
        setattr(settings, name, value)
    return [message.id for message in check_production()]


@pytest.mark.parametrize(("changes", "id_"), FOUND, ids=str)
def test_an_error_stops_the_start_and_a_warning_does_not(
    settings: Settings, changes: dict[str, Any], id_: str
) -> None:
    assert found(settings, **changes) == ([f"tickwire.{id_}"] if id_ else [])
    if id_.startswith("E"):
        with pytest.raises(ImproperlyConfigured, match="PRODUCTION=1 does not start like this"):
            refuse_unsafe()
    else:
        refuse_unsafe()


FOLDERS = dict.fromkeys(
    ("VAR_DIR", "STATIC_ROOT", "ARCHIVE_DIR", "REPLAY_DIR", "ONNX_MODEL_DIR"), str(Path(__file__).parent)
)
# The fault, and a word of the way out.
DEPLOYED: list[tuple[dict[str, Any], str, str]] = [
    ({}, "", ""),
    ({"EMAIL_HOST": "x"}, "E015", "EMAIL_URL=smtp+tls://"),
    *(
        ({"EMAIL_HOST": host}, "", "")
        for host in ("localhost", "192.0.2.1", "fd00::1", "mail.nowhere.invalid")
    ),
    ({"EMAIL_HOST": "x", "MAILS_ARE_SENT": False}, "", ""),
    *(
        ({name: value}, "E012", f"Set {name} to")
        for name, value in (
            ("CLOSE_GRACE_MS", 3_600_000),
            ("DRAIN_S", 3600.0),
            ("STOP_WITHIN_S", 3600.0),
            ("STOP_WITHIN_S", 0.0),
        )
    ),
    ({"VAR_DIR": Path("/nowhere")}, "E013", "install -d -o tickwire /nowhere"),
    ({"ARCHIVE_DIR": Path("/nowhere/archive")}, "E013", "/nowhere/archive"),
    *(
        ({"ARCHIVE_DIR": Path("/nowhere/archive")} | unused, "", "")
        for unused in ({"ARCHIVE": False}, {"ARCHIVE_S3_URL": ("bucket", "")})
    ),
    ({"ONNX_MODEL_DIR": __file__}, "E013", __file__),
    # For documentation (RFC 5737), so that no machine has it.
    ({"HOST": "192.0.2.77"}, "E016", "HOST=0.0.0.0"),
    ({"METRICS_HOST": "192.0.2.77"}, "E016", "METRICS_HOST=0.0.0.0"),
    *(({"HOST": host}, "", "") for host in ("127.0.0.1", "0.0.0.0", "localhost")),  # noqa: S104 - compared with
    ({"METRICS_PORT": 8000}, "E014", "METRICS_PORT=18000"),
    # On another machine, or in another container, it is right.
    ({"ENGINE_PORT": 8000}, "W008", "ENGINE_PORT=18000"),
    ({"ENGINE_PORT": 9100, "METRICS_PORT": 9100}, "W008", "ENGINE_PORT=19100"),
    ({"PORT": 0}, "", ""),
    ({"PORT": 60_000, "METRICS_PORT": 60_000}, "E014", "METRICS_PORT=20000"),
]


@pytest.mark.parametrize(("changes", "id_", "way_out"), DEPLOYED, ids=str)
def test_what_would_not_do_what_was_meant_is_refused_before_it_is_deployed_and_starts_all_the_same(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], id_: str, way_out: str
) -> None:
    monkeypatch.setattr("config.checks.env", Environment(FOLDERS))
    for name, value in (SAFE | FOLDERS | {"PORT": 8000} | changes).items():
        setattr(settings, name, value)
    faults = check_deployment()
    assert [fault.id for fault in faults] == ([f"tickwire.{id_}"] if id_ else [])
    assert all(way_out in (fault.hint or "") for fault in faults)
    refuse_unsafe()


def test_folder_that_cannot_be_written_is_refused(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("config.checks.env", Environment({"VAR_DIR": str(tmp_path)}))
    # Root may write everywhere.
    monkeypatch.setattr("os.access", lambda path, mode: False)
    settings.VAR_DIR = tmp_path
    (fault,) = (fault for fault in check_deployment() if fault.id == "tickwire.E013")
    assert "may not write" in fault.msg


def test_folder_that_nobody_named_need_not_be_there_yet(settings: Settings) -> None:
    settings.ARCHIVE_DIR = Path("/nowhere")
    assert "tickwire.E013" not in [fault.id for fault in check_deployment()]


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
    monkeypatch.setattr("config.logging.env", Environment({name: given, "OANDA_TOKEN": "twelve-chars"}))
    assert found(settings) == ["tickwire.W007"]
    assert check_production()[0].msg.startswith(f"{name} has a secret of fewer than 12 characters")
    refuse_unsafe()


def test_no_message_repeats_a_secret(settings: Settings) -> None:
    found(settings, SECRET_KEY="hunter2hunter2", KEY_PEPPER="hunter2hunter2")
    assert all("hunter2" not in f"{message.msg} {message.hint}" for message in check_production())
