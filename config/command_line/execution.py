"""Does what was typed, and says in a sentence what an operator can fix."""

import sys
from difflib import get_close_matches

import django
from django.core.management import execute_from_command_line, get_commands

from config.environment import env
from config.failures import explain
from config.installation import prepare, refuse_lost_secret, require_data, require_database
from core.program.commands import is_installed_command
from core.program.output import EvenUnread

from .help import COMMANDS, NEED_DATA, NEED_DATABASE, as_typed
from .words import typed_name

GO_ON_UNREAD = {"serve", "run_engine", "seed_demo"}

WITHOUT_TERMINAL = (
    "createsuperuser asks for a name and a password, and there is no terminal. Without one set"
    " DJANGO_SUPERUSER_PASSWORD and name the rest: `{program} createsuperuser --no-input --username NAME"
    " --email ADDRESS`."
)


def execute(words: list[str]) -> str:
    """Returns what went wrong, if anything did. A bug keeps its traceback."""
    try:
        _begin(words)
        if words[0] not in COMMANDS and (fault := _unknown(words[0])):
            return fault
        if _asks_nobody(words):
            return WITHOUT_TERMINAL.format(program=typed_name())
        try:
            execute_from_command_line([typed_name(), *words])
        except EOFError:
            if words[0] != "changepassword":
                raise
            # The question is still on the line.
            return "\nThe input ended before the password was given twice. Nothing was changed."
    except Exception as error:  # noqa: BLE001 - the top of the program: known faults become one sentence
        if (fault := explain(error) or "") == "":
            raise
        return fault
    return ""


def _begin(words: list[str]) -> None:
    name = words[0]
    if name == "help" or {"-h", "--help"} & set(words):
        # It is the same with any of them, and a wrong one must not keep it back.
        env.forget_all_but("VAR_DIR", "XDG_DATA_HOME")
        return
    if name in GO_ON_UNREAD:
        sys.stdout = EvenUnread(sys.stdout)
    # These look at what is there, and make nothing.
    if name == "doctor":
        refuse_lost_secret()
        return
    if _looks_at_a_copy(name, words):
        return
    if name in NEED_DATA:
        require_data()
        return
    if name in NEED_DATABASE:
        require_database()
    prepare()


def _looks_at_a_copy(name: str, words: list[str]) -> bool:
    """Which may lie where nothing else is kept."""
    option = {"backup": "--verify", "verify_archive": "--folder"}.get(name)
    return option is not None and any(word.partition("=")[0] == option for word in words)


def _asks_nobody(words: list[str]) -> bool:
    """Django would say so and end as if it had made somebody."""
    is_told = {"-h", "--help", "--no-input", "--noinput"} & set(words)
    has_terminal = sys.stdin is not None and sys.stdin.isatty()
    return words[0] == "createsuperuser" and not is_told and not has_terminal


def _unknown(name: str) -> str:
    """Empty for one of Django's or of a library."""
    django.setup()
    # Django answers `help NAME` itself.
    known = {*get_commands(), "help"}
    if name in known:
        return ""
    is_installed = is_installed_command()
    names = [as_typed(each, is_installed) for each in sorted(known)]
    shown = as_typed(name, is_installed)
    close = get_close_matches(shown, names, 1)
    program = typed_name()
    hint = f"Did you mean `{program} {close[0]}`?" if close else f"`{program} help` lists all commands."
    return f"There is no command {shown}. {hint}"
