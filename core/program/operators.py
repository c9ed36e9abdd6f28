"""Who runs a command."""

import getpass
import os


def operator() -> str:
    """As nobody can be called who signs up. In an image the user may be a number without a name."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = str(os.getuid())
    return f"{name} (operator)"
