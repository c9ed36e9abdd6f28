"""The command `tickwire-server`, and `manage.py` in a checkout.

In a wheel all rooms lie in this folder. It goes on the path when the command starts, so that
site-packages gets no `config` and no `accounts`."""

import gc
import os
import signal
import sys

# The exit codes with which a shell reports SIGINT and SIGPIPE.
INTERRUPTED, UNREAD = 130, 141


def main(without: str = "help") -> int:
    """`without`: the sub-command of a call that names none."""
    if sys.version_info < (3, 11):  # noqa: UP036 - the reader may well start this with an older Python
        sys.stderr.write(
            "Tickwire needs Python 3.11 or newer; this is Python {}.{}.\n".format(*sys.version_info[:2])
        )
        return 1
    own = os.path.dirname(os.path.abspath(__file__))
    rooms = own if os.path.isdir(os.path.join(own, "config")) else os.path.dirname(own)
    if sys.path[0] != rooms:
        sys.path.insert(0, rooms)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        return _do_what_is_read(without)
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped.\n")
        return INTERRUPTED
    finally:
        # Ctrl-C again would only break off Python's own end, and show where.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _do_what_is_read(without: str) -> int:
    from core.program import give_up, is_unread

    try:
        try:
            status = _do(without)
        except (SystemExit, KeyboardInterrupt):
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except BrokenPipeError:
        if not is_unread():
            raise
        give_up()
        return UNREAD
    return status


def _do(without: str) -> int:
    from config.command_line.words import read

    words, folder, answer, fault = read(sys.argv[1:], without)
    if folder:
        os.environ["VAR_DIR"] = folder
    if answer:
        sys.stdout.write(answer + "\n")
    if words:
        fault = _execute(words)
    if fault:
        sys.stderr.write(fault + "\n")
    return 1 if fault else 0


def serve_by_default() -> int:
    return main("serve")


def _execute(words: list) -> str:  # type: ignore[type-arg] # any Python 3 must be able to read it
    # What is imported is no garbage. config/apps.py ends this.
    gc.disable()
    try:
        import django  # noqa: F401
    except ImportError:
        return "Django is not installed here. Run `make run`, or use .venv/bin/python manage.py."
    from config.command_line.execution import execute

    return execute(words)
