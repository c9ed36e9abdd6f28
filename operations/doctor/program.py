"""What the program itself needs: its static files, and room for connections."""

from collections.abc import Iterator

from django.conf import settings

from pages.static_files import are_collected

from .diagnosis import Diagnosis, fail, ok, warn

# Of the process itself: the database, Redis, feeds, files, and some to spare.
FOR_ITSELF = 64
ENOUGH = 4096


def check_static_files() -> Iterator[Diagnosis]:
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


def judge_descriptors(most: int) -> Diagnosis:
    """`most`: what the service itself says, because this command was started by somebody else."""
    about = "connections"
    needed = FOR_ITSELF + settings.API_THREADS + settings.PAGE_THREADS + settings.CONNECTIONS_PER_ADDRESS
    fix = "Raise it: LimitNOFILE=65536 in the systemd unit, or ulimit -Hn 65536 in the shell that starts it."
    if most >= ENOUGH:
        return ok(about, f"The service may open {most:,} files.")
    if most < needed:
        says = f"The service may open {most:,} files, and its settings need {needed:,} for a single client."
        return fail(about, says, fix)
    return warn(about, f"The service may open {most:,} files, so it has fewer than that many clients.", fix)
