import math
from argparse import ArgumentParser
from textwrap import fill
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.environment import BASE_DIR, FILE
from config.environment.kinds import Variable
from config.environment.variables import TABLE

# The table of variables as files: docs/operate/settings.md, and an .env file in which each is a comment.
PAGE = BASE_DIR / "docs" / "operate" / "settings.md"
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
    lines = [INTRODUCTION]
    for each in TABLE:
        if isinstance(each, str):
            between = [""] * (len(lines) > 1)
            head = "| Variable | Type | Default | Meaning |\n|---|---|---|---|"
            lines += [*between, f"## {each}\n", head]
        else:
            lines.append(f"| {_name(each)} | {_kind(each)} | {_default(each)} | {each.meaning} |")
    return "\n".join([*lines, "", ADDRESSES])


def env_example() -> str:
    """Everything is commented out, so what is left alone has the default of the code."""
    lines = ["# All variables and their defaults, as docs/operate/settings.md explains them.", ""]
    for each in TABLE:
        if isinstance(each, str):
            lines += [f"# {each}", ""]
        else:
            note = f" Default: {each.otherwise}." if each.otherwise else ""
            lines.append(fill(each.meaning + note, 110, initial_indent="# ", subsequent_indent="# "))
            lines += [f"#{each.name}={'' if each.otherwise else _as_text(each)}", ""]
    return "\n".join(lines)


def _name(each: Variable) -> str:
    also = f", `{each.name}{FILE}`" if each.is_secret else ""
    marks = ["**secret**"] * each.is_secret + ["**production**"] * each.is_needed
    return f"`{each.name}`{also}" + (f" ({', '.join(marks)})" if marks else "")


def _kind(each: Variable) -> str:
    if each.begins:
        return f"begins with {' or '.join(f'`{name}`' for name in each.begins)}"
    if each.among:
        return " or ".join(f"`{name}`" for name in each.among)
    if each.highest < math.inf:
        return f"{KINDS[each.kind]}, {each.lowest:g} to {each.highest}"
    return KINDS[each.kind] + (f", {each.lowest:g} or more" if each.lowest else "")


def _default(each: Variable) -> str:
    return each.otherwise or (f"`{text}`" if (text := _as_text(each)) else "none")


def _as_text(each: Variable) -> str:
    match each.default:
        case tuple():
            return ",".join(each.default)
        case bool() | float():
            return f"{each.default:g}"
        case _:
            return str(each.default)


class Command(BaseCommand):
    help = "Print the table of all variables of the environment, as docs/operate/settings.md has it."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--write", action="store_true", help="Write the page instead of printing it.")
        parser.add_argument(
            "--env", action="store_true", help="Print an .env file with everything as a comment."
        )

    def handle(self, *, write: bool, env: bool, **options: Any) -> None:
        if not write:
            self.stdout.write(env_example() if env else markdown())
        elif PAGE.is_file():
            PAGE.write_text(markdown())
        else:
            raise CommandError("The page exists in a checkout only: without --write the table is printed.")
