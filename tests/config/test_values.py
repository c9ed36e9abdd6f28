"""Values of the environment are checked together at the start, and secrets may come from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.environment import Environment
from tests.programs.commands import manage

SECRET = "Tr0ub4dor-and-3-canaries"  # noqa: S105 - looked for in messages
PRODUCTION = {
    "PRODUCTION": "1",
    "SECRET_KEY": "x",
    "KEY_PEPPER": "y",
    "DATABASE_URL": "postgresql://db/market",
    "REDIS_URL": "redis://cache",
    "ALLOWED_HOSTS": "api.example.com",
    "EMAIL_URL": "dummymail://",
}


def faults(**given: str) -> list[str]:
    with pytest.raises(ImproperlyConfigured) as refused:
        Environment(given).text("HOST")
    return str(refused.value).splitlines()


def test_all_faults_are_told_at_once_and_a_misspelt_name_is_warned_of(tmp_path: Path) -> None:
    missing = PRODUCTION | {"SECRET_KEY": "", "REDIS_URL": ""}
    assert faults(**missing) == ["PRODUCTION=1 needs these variables: SECRET_KEY, REDIS_URL."]
    checked = manage(tmp_path / "var", "check", DATBASE_URL="sqlite:////srv/x")
    assert (checked.returncode, "DATBASE_URL is read by nothing" in checked.stderr) == (0, True)
    ended = manage(tmp_path, "check", PORT="many", DATABASE_URL="nonsense", LOG_LEVEL="loud", DRAIN_S="-1")
    assert (ended.returncode, ended.stderr.splitlines()) == (
        1,
        [
            "PORT should be a whole number from 0 to 65535, not 'many'.",
            "DRAIN_S should be a number of 0 or more, not '-1'.",
            "DATABASE_URL should look like postgresql://user:password@host:5432/name or sqlite:////folder/file.",
            "LOG_LEVEL should be DEBUG or INFO or WARNING or ERROR or CRITICAL, not 'loud'.",
        ],
    )


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("PORT", "65536", "PORT should be a whole number from 0 to 65535, not '65536'."),
        ("PORT", "80.5", "PORT should be a whole number from 0 to 65535, not '80.5'."),
        ("API_THREADS", "0", "API_THREADS should be a whole number of 1 or more, not '0'."),
        ("SIGNUPS_A_DAY", "-1", "SIGNUPS_A_DAY should be a whole number of 0 or more, not '-1'."),
        (
            "SIGNUPS_A_DAY",
            "9" * 5000,
            f"SIGNUPS_A_DAY should be a whole number of 0 or more, not '{'9' * 60}'.",
        ),
        ("SIGNUPS_A_DAY", "9" * 50, "SIGNUPS_A_DAY should be at most 2147483647."),
        ("REPLAY_SPEED", "nan", "REPLAY_SPEED should be a number of 0 or more, not 'nan'."),
        ("REPLAY_SPEED", "inf", "REPLAY_SPEED should be at most 2147483647."),
        *(
            (
                name,
                host,
                f"{name} has {host!r}, which is neither an address nor a name: write 127.0.0.1, or 0.0.0.0 "
                "for all addresses of this machine, without a port.",
            )
            for name, host in (("HOST", "not a host"), ("HOST", "10.0.0.256"), ("METRICS_HOST", "a:9100"))
        ),
        ("DEMO", "ja", "DEMO should be 1 or 0 (or true, yes, on; false, no, off), not 'ja'."),
        ("CANDLE_PRICE", "ask", "CANDLE_PRICE should be bid or mid, not 'ask'."),
        *(
            (
                "KRAKEN_WS_URL",
                text,
                f"KRAKEN_WS_URL should be an address that begins with wss:// or ws://, not {text!r}.",
            )
            for text in ("http://a", "wss://", "wss:// a", "ws://a:99999", "ws://a:0")
        ),
        *(
            (
                "CSRF_TRUSTED_ORIGINS",
                text,
                f"CSRF_TRUSTED_ORIGINS has {text!r}, which no browser sends: write https://www.example.com, "
                "without a path or a slash at its end.",
            )
            for text in ("https://www.example.com/", "www.example.com", "https://", "https://a b")
        ),
        *(
            (
                "CONTACT_EMAIL",
                text,
                f"CONTACT_EMAIL should be an address such as support@example.com, not {text!r}.",
            )
            for text in ("support", "Support <support@tickwire.example>", "a@b@c")
        ),
    ],
)
def test_fault_names_the_variable_and_what_is_allowed(name: str, given: str, sentence: str) -> None:
    assert faults(**{name: given}) == [sentence]


@pytest.mark.parametrize(
    ("given", "kind", "name", "value"),
    [
        *(({"DEBUG": word}, "switch", "DEBUG", True) for word in ("1", "true", "Yes", " on ")),
        ({"LOG_LEVEL": "debug"}, "text", "LOG_LEVEL", "DEBUG"),
        ({"PORT": ""}, "whole", "PORT", 8000),
        *(({"HOST": host}, "text", "HOST", host) for host in ("::", "10.0.0.5", "tickwire_web.example")),
        ({"KRAKEN_REST_URL": ""}, "text", "KRAKEN_REST_URL", "https://api.kraken.com"),
        ({"ALLOWED_HOSTS": " a.example, b.example,"}, "words", "ALLOWED_HOSTS", ["a.example", "b.example"]),
        *(
            ({"CSRF_TRUSTED_ORIGINS": text}, "words", "CSRF_TRUSTED_ORIGINS", [text])
            for text in ("https://*.example.com", "http://127.0.0.1:8000", "https://[fd00::1]")
        ),
        ({}, "parsed", "CONTACT_EMAIL", ""),
        ({"CONTACT_EMAIL": "a@b.example"}, "parsed", "CONTACT_EMAIL", "a@b.example"),
        # What is no secret has no file.
        ({"PORT_FILE": "/dev/null"}, "whole", "PORT", 8000),
    ],
)
def test_value_is_read_as_it_is_meant_and_an_empty_one_is_unset(
    given: dict[str, str], kind: str, name: str, value: object
) -> None:
    assert getattr(Environment(given), kind)(name) == value


def test_variable_that_is_not_in_the_table_is_not_read() -> None:
    with pytest.raises(KeyError):
        Environment({"NOWHERE": "1"}).text("NOWHERE")
    with pytest.raises(TypeError, match="PORT is read as text"):
        Environment({}).text("PORT")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("DATBASE_URL", "DATABASE_URL"),
        ("LOGLEVEL", "LOG_LEVEL"),
        ("SECRET_KEY_FALLBACK", "SECRET_KEY_FALLBACKS"),
        ("KEY_PEPER_FILE", "KEY_PEPPER_FILE"),
        ("PORT_FILE", "PORT"),
    ],
)
def test_misspelt_variable_is_noticed_and_those_of_other_programs_are_none_of_ours(
    name: str, meant: str
) -> None:
    others = ("PATH", "HOME", "HOSTNAME", "TEST_DATABASE_URL", "XDG_DATA_DIRS", "REDIS_PORT", "PORTS", "LANG")
    assert list(Environment(dict.fromkeys((*others, name), "x")).strangers()) == [(name, meant)]


def test_secret_comes_from_a_file_without_its_newline_and_is_refused_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\r\n")
    env = Environment(PRODUCTION | {"SECRET_KEY": "", "SECRET_KEY_FILE": str(path)})
    assert env.text("SECRET_KEY") == SECRET
    assert faults(METRICS_TOKEN=SECRET, METRICS_TOKEN_FILE=str(path)) == [
        "METRICS_TOKEN and METRICS_TOKEN_FILE are both set: unset one, so that it is clear which counts."
    ]


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (None, "which cannot be read: no such file or directory."),
        ("a folder", "which cannot be read: is a directory."),
        (b"", "which is empty."),
        (b"\n", "which is empty."),
        (b"\xff\xfe", "which is not text in UTF-8."),
        (b"one\ntwo\n", "which has more than one line."),
        (b"x" * 70_000, "which is larger than 65,536 characters."),
    ],
)
def test_file_that_holds_no_secret_is_one_sentence(tmp_path: Path, written: Any, reason: str) -> None:
    path = tmp_path / "secret"
    if written == "a folder":
        path.mkdir()
    elif written is not None:
        path.write_bytes(written)
    # It is named alone, and not as missing besides.
    assert faults(**PRODUCTION | {"KEY_PEPPER": "", "KEY_PEPPER_FILE": str(path)}) == [
        f"KEY_PEPPER_FILE names {str(path)!r}, {reason}"
    ]


def test_file_of_a_list_has_one_on_each_line_and_a_file_may_be_empty(tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    for text, value in (("\n", ""), ("a-token\n", "a-token")):
        path.write_text(text)
        assert Environment({"METRICS_TOKEN_FILE": str(path)}).text("METRICS_TOKEN") == value
    env = Environment({"KEY_PEPPER_FALLBACKS_FILE": str(path)})
    path.write_text("")
    assert env.words("KEY_PEPPER_FALLBACKS", ["another"]) == []
    path.write_text("one, with a comma\n\ntwo\n")
    env = Environment({"KEY_PEPPER_FALLBACKS_FILE": str(path)})
    assert env.words("KEY_PEPPER_FALLBACKS") == ["one, with a comma", "two"]


@pytest.mark.parametrize("name", ["DATABASE_URL", "REDIS_URL", "EMAIL_URL"])
def test_no_message_shows_a_secret(name: str) -> None:
    assert SECRET not in "".join(faults(**{name: f"nonsense://ada:{SECRET}@host?{SECRET}={SECRET}"}))
    assert SECRET not in "".join(faults(**{name: SECRET}))
