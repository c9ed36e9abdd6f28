"""Which modules the scripts of a page import: the browser fetches them at once, and not level by level."""

import posixpath
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from django.contrib.staticfiles import finders

# Not `import("…")`: what is fetched when it is wanted may wait.
IMPORTED = re.compile(r"""^(?:import|export)\b[^;("']*?["'](\.[^"']+)["'];""", re.MULTILINE)


@cache
def modules_of(*scripts: str) -> tuple[str, ...]:
    """The names of static files: each script's own, and then all that it imports."""
    found: dict[str, None] = {}
    for script in scripts:
        waiting = [script]
        while waiting:
            name = waiting.pop(0)
            if name not in found:
                found[name] = None
                waiting += imports_of(name)
    return tuple(found)


def imports_of(name: str) -> Iterator[str]:
    path = finders.find(name)
    assert path is not None, f"{name} is no static file"  # noqa: S101 - a module names it
    for target in IMPORTED.findall(Path(path).read_text()):
        yield posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
