"""What the program itself needs: its static files, and room for connections."""

import resource
from collections.abc import Iterator

from django.conf import settings

from pages.static_files import are_collected

from .diagnosis import Diagnosis, fail, ok, warn

# Of the process itself: the database, Redis, feeds, files, and some to spare.
FOR_ITSELF = 64
ENOUGH = 4096


def look_at_static_files() -> Iterator[Diagnosis]:
    about = "static files"
    if not settings.PRODUCTION:
        yield ok(about, "Outside production they are served from where they lie.")
    elif are_collected():
        yield ok(about, "They are collected, and those of this version.")
    else:
        says = f"{settings.STATIC_ROOT} does not hold those of this version yet."
        yield warn(
            about, says, "`serve` collects them when it starts; for other servers run `collectstatic`."
        )


def look_at_descriptors() -> Iterator[Diagnosis]:
    about = "connections"
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = FOR_ITSELF + settings.API_THREADS + settings.PAGE_THREADS + settings.CONNECTIONS_PER_ADDRESS
    mend = "Raise it: LimitNOFILE=65536 in the systemd unit, or ulimit -Hn 65536 in the shell that starts it."
    if most == resource.RLIM_INFINITY or most >= ENOUGH:
        yield ok(
            about, "There is room for " + (f"{most:,}" if most > 0 else "any number of") + " open files."
        )
    elif most < needed:
        says = f"A process may open {most:,} files, and these settings need {needed:,} for a single client."
        yield fail(about, says, mend)
    else:
        yield warn(about, f"A process may open {most:,} files, so it has fewer than that many clients.", mend)
