"""The table of variables as files: docs/operate/settings.md, and an .env file in which each is a comment."""

from collections.abc import Iterator
from textwrap import fill

from .values import FILE
from .variable import Variable
from .variables import GROUPS

INTRODUCTION = """\
# Settings

Everything is set by environment variables, which are read once, at the start. An empty variable counts as
unset. With a value that is not allowed nothing starts: each such variable is named, with what was given and
what is allowed. This page is made of the table that the code reads (`manage.py settings_table --write`).

A **secret** may also be in a file that `NAME_FILE` names, such as `SECRET_KEY_FILE=/run/secrets/secret_key`.
A newline at its end does not count, and setting both is refused. No message and no line of the log shows a
secret. Variables marked **production** have to be set with `PRODUCTION=1`.
"""
KINDS = {"text": "text", "whole": "whole number", "number": "number", "switch": "1 or 0", "words": "list"}


def markdown() -> str:
    return "\n".join([INTRODUCTION, *_tables()])


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
