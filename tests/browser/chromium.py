"""Debian's chromium for the browser tests: Playwright drives it as well as a build of its own."""

from tests.programs.debian import require_debian

# Root, as in a container, has no user namespace to build the sandbox from; the rest silences calls home.
LAUNCH_ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def require_chromium() -> str:
    """The path of chromium, installed if need be; without one a test is skipped, but CI fails."""
    return require_debian("chromium")
