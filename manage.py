#!/usr/bin/env python
"""Tickwire's commands: `manage.py serve`, `manage.py issue_key NAME`, `manage.py help`."""

import gc
import os
import sys


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if sys.version_info < (3, 11):  # noqa: UP036 - the reader may well start this with an older Python
        sys.stderr.write(
            "Tickwire needs Python 3.11 or newer; this is Python {}.{}.\n".format(*sys.version_info[:2])
        )
        return 1
    # What is imported is no garbage. config/apps.py ends this.
    gc.disable()
    try:
        from django.core.management import execute_from_command_line
    except ImportError:
        sys.stderr.write("Django is not installed here. Run `make run`, or use .venv/bin/python manage.py.\n")
        return 1
    from config.failures import explain
    from config.installation import prepare

    try:
        prepare()
        execute_from_command_line(sys.argv)
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped.\n")
        return 130
    except Exception as error:  # noqa: BLE001 - the top of the program: known faults become one sentence
        sentence = explain(error)
        if sentence is None:
            raise
        sys.stderr.write(f"{sentence}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
