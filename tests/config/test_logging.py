"""No line of the log holds a secret, or more than one line."""

from __future__ import annotations

import json
import logging
import sys
from functools import partial
from typing import Any

import pytest
from django.test import RequestFactory
from pytest_django.fixtures import Settings

from accounts.key_text import generate_key
from accounts.keys.caller import issue_browser_token
from config.environment import Environment
from config.environment.variables import VARIABLES
from config.logging import line_formatter
from config.logging import redact as redact_line

KEY = generate_key()
INGEST = generate_key("tw_ingest_")
OWN = "correct-horse-battery"
redact = partial(redact_line, own=[OWN])


def line(message: str, *args: object, json_: bool = False, **facts: Any) -> str:
    record = logging.LogRecord("test", logging.ERROR, __file__, 1, message, args, facts.pop("exc_info", None))
    record.__dict__.update(facts)
    return line_formatter(json=json_).format(record)


@pytest.mark.parametrize(
    "text",
    [
        "GET /api/symbols?api_key=KEY",
        "GET /x?a=1&API_KEY=KEY&b=2",
        "<ASGIRequest: GET '/docs?key=KEY'>",
        "X-API-Key: KEY",
        '{"action": "subscribe", "api_key": "KEY"}',
        "KeyError: 'KEY'",
        "Invalid HTTP_HOST header: 'KEY.example.com'",
        "https%3A%2F%2Fx%3Fapi_key%3DKEY",
    ],
)
def test_key_is_taken_out_wherever_it_stands_but_for_its_public_prefix(text: str) -> None:
    assert KEY[16:] not in redact(text.replace("KEY", KEY))
    assert KEY[:16] in redact(f"refused: {KEY}")


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abc.def.ghi", "abc.def"),
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("postgresql://tickwire:hunter2@db:5432/x", "hunter2"),
        ("rediss://:hunter2@cache:6379", "hunter2"),
        ("POST /?password=hunter2&x=1", "hunter2"),
        ("GET /?token=abcdef", "abcdef"),
        ("{'sessionid': 'abcdef'}", "abcdef"),
        ("GET /demo-login/IjEyMyI:1wAbc:xyz", "1wAbc"),
        ("/accounts/password/reset/key/1a-c9x8y7/", "c9x8y7"),
        (f"the secret {OWN} of this installation", OWN),
        (f"inside{OWN}a word", OWN),
        ("POST /?new_password=hunter2&x=1", "hunter2"),
        ("oldpassword=hunter2", "hunter2"),
        ("refresh_token: hunter2", "hunter2"),
        ("X-Client-Secret: hunter2", "hunter2"),
        ("Authorization: Token hunter2", "hunter2"),
        ("User(name='x', password='two words', y=1)", "two words"),
        ('password = "it\'s mine"', "mine"),
        ("password2=hunter2", "hunter2"),
        ("aws_secret_access_key = hunter2", "hunter2"),
        ('{\\"newPassword\\": \\"hunter2\\"}', "hunter2"),
        ("new_password%3Dhunter2", "hunter2"),
        ("db_pwd=hunter2", "hunter2"),
        ("page_pt_7-1790000000.abc_d-e refused", "abc_d-e"),
    ],
)
def test_other_secrets_are_taken_out_too(text: str, secret: str) -> None:
    assert secret not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "GET /api/market/EURUSD/quote 200 1.2 ms req_abc",
        "http://127.0.0.1:8000/x@y",
        "key: 7",
        "400 tokens, max_tokens=4096, tokens: 12",
        "tokenizer: fast, secretary=Ann, cookies: 3, monkey=1, keyboard: us",
        "The password is too short, and the token has expired.",
        "KEY_PEPPER and SECRET_KEY are read from files",
        "route=/accounts/password/reset/ status=200",
        "script_7-8.js, excerpt_7-8.txt",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


def given(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    monkeypatch.setattr("config.logging.env", Environment(variables))


@pytest.mark.parametrize("name", [each.name for each in VARIABLES.values() if each.is_secret])
@pytest.mark.parametrize("length", [1, 5, 11, 40])
def test_no_secret_stands_behind_the_name_of_its_variable(name: str, length: int) -> None:
    secret = ("q7!" * 40)[:length]
    value = f"redis://user:{secret}@host/0" if name.endswith("_URL") else secret
    for text in (
        f"{name}={value}",
        f"{name}: {value}",
        f"{name.lower()} = '{value}'",
        f"{{'{name}': '{value}'}}",
    ):
        assert secret not in redact(text).replace(name, "")


@pytest.mark.parametrize("length", [6, 8, 11, 12, 13, 40, 200])
@pytest.mark.parametrize("around", ["{}", "password {} refused", "AUTH:{};", "'{}'", "/{}/", "_{}_", "({})."])
def test_secret_of_the_environment_is_taken_out_wherever_it_stands(
    monkeypatch: pytest.MonkeyPatch, length: int, around: str
) -> None:
    secret = ("tiger-123" * 40)[:length]
    for variables in (
        {"METRICS_TOKEN": secret},
        {"OPENAI_API_KEY": secret},
        {"DATABASE_URL": f"postgresql://tickwire:{secret}@db/tickwire"},
        {"DATABASE_URL": f"postgresql://tickwire@db/tickwire?sslpassword={secret}"},
        {"REDIS_URL": f"redis://:{secret}@cache/0"},
        {"EMAIL_URL": f"smtps://user:{secret}@mail"},
    ):
        given(monkeypatch, **variables)
        for json_ in (False, True):
            assert secret not in line(around.format(secret), field=around.format(secret), json_=json_)


@pytest.mark.parametrize(
    ("secret", "text"),
    [("short", "too short"), ("signal", "signals, a signal_id and resignalling"), ("12345", "12345 ticks")],
)
def test_secret_as_short_as_a_word_takes_no_part_out_of_a_line(
    monkeypatch: pytest.MonkeyPatch, secret: str, text: str
) -> None:
    given(monkeypatch, METRICS_TOKEN=secret)
    assert line(text).count("***") == text.count(f" {secret}_")


def test_ingest_key_and_page_token_are_taken_out(db: None) -> None:
    token, _ = issue_browser_token(7)
    said = redact(f"sent {INGEST} and {token}.")
    assert INGEST[18:] not in said
    assert token[5:] not in said


@pytest.mark.parametrize("json_", [False, True])
def test_secrets_go_from_arguments_extras_and_exceptions(json_: bool, settings: Settings) -> None:
    try:
        raise ValueError(f"no {KEY}, nor {settings.SECRET_KEY}")
    except ValueError:
        text = line("of %s", KEY, request=f"GET /?k={KEY}", json_=json_, exc_info=sys.exc_info())
    # And from a line that cannot be formatted.
    broken = line("%d of %s", KEY, json_=json_)
    assert "ValueError" in text
    assert KEY[:16] in broken
    assert KEY[16:] not in text + broken
    assert settings.SECRET_KEY not in text
    settings.SECRET_KEY = 'quo"te\\and-back-slash'
    assert "back-slash" not in line("the secret is %s", settings.SECRET_KEY, json_=json_)


@pytest.mark.parametrize("json_", [False, True])
def test_what_was_sent_stays_on_one_line_escaped_and_cut(json_: bool) -> None:
    text = line("GET %s", "/\n2026 forged\r\x1b[2J\u2028" + "x" * 100_000, json_=json_)
    assert "udc80" in line("half a character \udc80", json_=json_, path="b\udc80")
    assert len(text.splitlines()) == 1
    assert "\x1b" not in text
    assert len(text) < 6_000


def test_fields_stand_in_the_json_of_production_and_behind_the_text_of_a_readable_line() -> None:
    fields = json.loads(line("GET / %s", KEY, json_=True, status=401, ms=1.5, slow=True, account=None))
    assert (fields["status"], fields["ms"], fields["slow"], fields["account"]) == (401, 1.5, True, None)
    assert {"timestamp", "level", "logger", "event"} <= fields.keys()
    assert fields["event"].startswith(f"GET / {KEY[:16]}")
    assert line("GET / 401", status=401).endswith("[test] status=401")


@pytest.mark.parametrize("json_", [False, True])
def test_field_that_is_named_as_a_secret_is_hidden(json_: bool) -> None:
    names = ("password", "api_key", "new_password", "clientSecret", "REFRESH_TOKEN", "password2")
    text = line("x", json_=json_, **dict.fromkeys(names, "hunter2222"), tokens="12", secretary="Ann")
    assert "hunter2222" not in text
    assert "Ann" in text
    assert "12" in text.rpartition("tokens")[2]


def test_secret_across_the_end_of_a_long_text_is_not_shown_in_part(settings: Settings) -> None:
    settings.SECRET_KEY = "a-secret-that-is-cut-somewhere"
    for before in range(3_980, 4_001):
        assert "a-secret" not in line("x" * before + settings.SECRET_KEY)


def test_request_of_django_is_shown_without_its_query() -> None:
    request = RequestFactory().get(f"/page?api_key={KEY}&note=private")
    fields = json.loads(line("Internal Server Error", json_=True, request=request))
    assert (fields["method"], fields["path"]) == ("GET", "/page")
    assert "private" not in str(fields)


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("REDIS_URL", "redis://user:correct%2Dhorse-battery@cache:6379/0"),
        ("DATABASE_URL", "postgresql://user:correct%2Dhorse-battery@[::1],[::2]:5433/name"),
    ],
)
def test_password_in_an_address_of_the_environment_is_known_by_itself(
    monkeypatch: pytest.MonkeyPatch, name: str, address: str
) -> None:
    given(monkeypatch, **{name: address})
    for shown in ("correct%2Dhorse-battery", "correct-horse-battery"):
        assert shown not in line("AUTH %s failed", shown)
