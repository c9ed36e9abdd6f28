"""The values of all variables, read together, so that all faults are named at once; and the page that
describes them."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from textwrap import fill
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from core.program import IS_CHECKOUT, ROOT

from .kinds import SHOWN, Variable
from .variables import GROUPS, VARIABLES

FILE = "_FILE"
LARGEST_FILE = 65_536

# DATBASE_URL is DATABASE_URL, and TEST_DATABASE_URL is something else.
ALIKE, SHORTEST_MISSPELT = 0.88, 6


class Environment:
    """Each name has to stand in the table of variables; an empty variable counts as unset."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given

    def text(self, name: str, otherwise: str = "") -> str:
        return str(self._of(name, "text", otherwise))

    def whole(self, name: str, otherwise: int | None = None) -> int:
        return int(self._of(name, "whole", otherwise))

    def number(self, name: str, otherwise: float | None = None) -> float:
        return float(self._of(name, "number", otherwise))

    def switch(self, name: str, *, otherwise: bool | None = None) -> bool:
        return bool(self._of(name, "switch", otherwise))

    def words(self, name: str, otherwise: list[str] | None = None) -> list[str]:
        return list(self._of(name, "words", otherwise))

    def default(self, name: str) -> str:
        """Whatever was given."""
        return str(VARIABLES[name].value_of_default())

    def parsed(self, name: str) -> Any:
        """What the function made of it that stands in the table as `read`; None if nothing was given."""
        return self._values[name]

    def secrets(self) -> dict[str, str]:
        """What was given of them, which no log may show."""
        texts, _ = self._texts
        return {name: text for name, text in texts.items() if VARIABLES[name].is_secret}

    def strangers(self) -> Iterator[tuple[str, str]]:
        """Variables that nothing reads, beside the ones that are probably meant."""
        read = VARIABLES.keys() | {f"{name}{FILE}" for name, each in VARIABLES.items() if each.is_secret}
        long = [name for name in read if len(name) >= SHORTEST_MISSPELT]
        for name in sorted(self._given.keys() - read):
            meant = name.removesuffix(FILE)
            close = [meant] if meant in VARIABLES else get_close_matches(name, long, 1, ALIKE)
            if close:
                yield name, close[0]

    def forget_all_but(self, *names: str) -> None:
        """Before the first is read."""
        self._given = {name: text for name, text in self._given.items() if name in names}

    def _of(self, name: str, kind: str, otherwise: Any) -> Any:
        if VARIABLES[name].kind != kind:
            raise TypeError(f"{name} is read as {kind}, and the table has it as {VARIABLES[name].kind}.")
        value = self._values[name]
        return otherwise if value is None else value

    @cached_property
    def _texts(self) -> tuple[dict[str, str], list[str]]:
        texts: dict[str, str] = {}
        faults = []
        for variable in VARIABLES.values():
            try:
                if found := self._text_of(variable):
                    texts[variable.name] = found
            except ImproperlyConfigured as fault:
                faults.append(str(fault))
        return texts, faults

    def _text_of(self, variable: Variable) -> str:
        name = variable.name
        given = self._given.get(name, "")
        path = self._given.get(f"{name}{FILE}", "") if variable.is_secret else ""
        if given and path:
            raise ImproperlyConfigured(
                f"{name} and {name}{FILE} are both set: unset one, so that it is clear which counts."
            )
        if not path:
            return given
        # Files of secrets that not everybody needs are there all the time, so that units can name them.
        may_be_empty, may_have_lines = not variable.is_needed, variable.kind == "words"
        return contents(f"{name}{FILE}", path, may_be_empty=may_be_empty, may_have_lines=may_have_lines)

    @cached_property
    def _values(self) -> dict[str, Any]:
        texts, faults = self._texts
        values: dict[str, Any] = {}
        for name, variable in VARIABLES.items():
            values[name] = variable.value_of_default()
            if name in texts:
                try:
                    values[name] = variable.value_of(texts[name])
                except ImproperlyConfigured as fault:
                    faults.append(str(fault))
                except (ValueError, LookupError):
                    faults.append(_refusal(variable, texts[name]))
        if values["PRODUCTION"]:
            faults += self._faults_of_production(values)
        if faults:
            raise ImproperlyConfigured("\n".join(dict.fromkeys(faults)))
        return values

    def _faults_of_production(self, values: Mapping[str, Any]) -> Iterator[str]:
        needed = [name for name, variable in VARIABLES.items() if variable.is_needed]
        missing = [name for name in needed if not (self._given.get(name) or self._given.get(f"{name}{FILE}"))]
        if missing:
            yield f"PRODUCTION=1 needs these variables: {', '.join(missing)}."
        if values["DEMO"] or values["DEBUG"]:
            yield "PRODUCTION=1 runs without DEMO and DEBUG: unset both."


def _refusal(variable: Variable, given: str) -> str:
    shown = "what it holds" if variable.is_secret else repr(given[:SHOWN])
    return f"{variable.name} should be {variable.allowed}, not {shown}."


def contents(name: str, path: str, *, may_be_empty: bool, may_have_lines: bool) -> str:
    """Without the newline at the end, which nearly every editor and `echo` leave there."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            found = file.read(LARGEST_FILE + 1).strip("\r\n")
    except OSError as error:
        reason = (error.strerror or "it cannot be read").lower()
        raise ImproperlyConfigured(f"{name} names {path!r}, which cannot be read: {reason}.") from None
    except UnicodeDecodeError:
        raise ImproperlyConfigured(f"{name} names {path!r}, which is not text in UTF-8.") from None
    if (not found and not may_be_empty) or len(found) > LARGEST_FILE:
        size = "empty" if not found else f"larger than {LARGEST_FILE:,} characters"
        raise ImproperlyConfigured(f"{name} names {path!r}, which is {size}.")
    if "\n" in found and not may_have_lines:
        raise ImproperlyConfigured(f"{name} names {path!r}, which has more than one line.")
    return f"{found}\n" if may_have_lines else found


# Where an installation keeps what it keeps, if nobody says so.
def default_folder(data_home: str) -> Path:
    """Installed, by https://specifications.freedesktop.org/basedir-spec/latest/: no relative path counts."""
    if IS_CHECKOUT:
        return ROOT / "var"
    if Path(data_home).is_absolute():
        return Path(data_home) / "tickwire"
    try:
        return Path.home() / ".local" / "share" / "tickwire"
    except RuntimeError:
        raise ImproperlyConfigured(
            "There is no home directory to keep the data in. Name a folder with --data or VAR_DIR."
        ) from None


# The table of variables as files: docs/operate/settings.md, and an .env file in which each is a comment.
INTRODUCTION = """\
# Settings

Everything is set by environment variables, which are read once, when a process starts. An empty variable
counts as unset. Nothing starts with an invalid value: each such variable is named, with the given value and
those that are allowed. `tickwire-server settings-table --write` generates this page from the table that the
code reads.

A **secret** may also be in a file that `NAME_FILE` names, such as `SECRET_KEY_FILE=/run/secrets/secret_key`.
A newline at the end of the file is ignored, and setting both is an error. An empty file counts as unset, but
the file of a **production** variable must not be empty. These variables have to be set with `PRODUCTION=1`.
No message and no log line shows a secret, [unless it is too short](logs.md#secrets). The units and
`compose.yaml` in `deploy/` name a file for each secret.

Requests to venues and language models also observe `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`,
`SSL_CERT_FILE` and `SSL_CERT_DIR`, as most programs do; requests for news observe none of these.
"""
ADDRESSES = """\
## The format of DATABASE_URL

    postgresql://user:password@host:5432/name?sslmode=verify-full&sslrootcert=/etc/ca.pem
    postgresql://user:password@host1:5432,host2:5432/name?target_session_attrs=read-write
    postgresql://user:password@[2001:db8::5]:5432/name
    postgresql://user@%2Frun%2Fpostgresql/name          (a socket; or postgresql://user@/name?host=/run/postgresql)
    sqlite:////srv/tickwire/tickwire.sqlite3?timeout=20&synchronous=FULL&cache_size=-8000&mmap_size=0

In a user name, a password or a path, write `%23` for #, `%3F` for ?, `%40` for @, `%2F` for / and `%25` for
%. The query is passed to PostgreSQL's client library as it is; an option that it does not know is
an error. With several hosts and `target_session_attrs=read-write`, connections go to the host that accepts
writes.

Behind PgBouncer with `pool_mode = transaction`, set `DATABASE_POOLER=transaction`. Then no cursors outlive
a transaction, and no `options` are sent, because PgBouncer rejects them. Set what they would set for the
role instead: `ALTER ROLE tickwire SET idle_in_transaction_session_timeout = '10s'`. Run `tickwire-server
migrate` with the address of PostgreSQL itself, because its session limits how long it waits for tables.
"""
KINDS = {"text": "text", "whole": "whole number", "number": "number", "switch": "1 or 0", "words": "list"}


def markdown() -> str:
    return "\n".join([INTRODUCTION, *_tables(), ADDRESSES])


def env_example() -> str:
    """Everything is commented out, so what is left alone has the default of the code."""
    lines = ["# All variables and their defaults, as docs/operate/settings.md explains them.", ""]
    for group in GROUPS:
        lines += [f"# {group.title}", ""]
        for each in group.variables:
            note = f" Default: {each.otherwise}." if each.otherwise else ""
            lines.append(fill(each.meaning + note, 110, initial_indent="# ", subsequent_indent="# "))
            lines += [f"#{each.name}={'' if each.otherwise else _as_text(each)}", ""]
    return "\n".join(lines)


def _tables() -> Iterator[str]:
    for group in GROUPS:
        yield f"## {group.title}\n"
        yield "| Variable | Type | Default | Meaning |\n|---|---|---|---|"
        for each in group.variables:
            yield f"| {_name(each)} | {_kind(each)} | {_default(each)} | {each.meaning} |"
        yield ""


def _name(each: Variable) -> str:
    also = f", `{each.name}{FILE}`" if each.is_secret else ""
    marks = ["**secret**"] * each.is_secret + ["**production**"] * each.is_needed
    return f"`{each.name}`{also}" + (f" ({', '.join(marks)})" if marks else "")


def _kind(each: Variable) -> str:
    if each.among or each.begins:
        names = " or ".join(f"`{name}`" for name in each.among or each.begins)
        return names if each.among else f"begins with {names}"
    range_ = ""
    if each.highest is not None:
        range_ = f", {each.lowest:g} to {each.highest}"
    elif each.lowest:
        range_ = f", {each.lowest:g} or more"
    return KINDS[each.kind] + range_


def _default(each: Variable) -> str:
    if each.otherwise:
        return each.otherwise
    return f"`{text}`" if (text := _as_text(each)) else "none"


def _as_text(each: Variable) -> str:
    match each.default:
        case bool():
            return str(int(each.default))
        case tuple():
            return ",".join(each.default)
        case float():
            return f"{each.default:g}"
        case _:
            return str(each.default)
