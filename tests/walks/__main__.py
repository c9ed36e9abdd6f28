"""`make walks`: through how many of our modules five walks pass on a running service, and whether that is
more than before. `--json` prints the figures, `-v` the functions that each walk calls, in order."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.programs.running import environment

from .counting import Figures, Run, Stack, figures, module_of, walk
from .limits import LIMITS, PASSED_BY_ALL, WAY_OUT

Walks = dict[str, list[str]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.walks", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("-v", "--verbose", action="store_true", help="print what each walk calls")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="tickwire-walks-") as directory:
        walks = counted(Path(directory))
    if options.verbose:
        sys.stdout.write("\n\n".join(spelled_out(name, names) for name, names in walks.items()) + "\n")
    elif options.json:
        found = {name: figures(names)._asdict() for name, names in walks.items()}
        sys.stdout.write(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(table(walks))
    sentences = [too_long(name, figures(names)) for name, names in walks.items()]
    sys.stderr.write("".join(sentences))
    return any(sentences)


def counted(directory: Path) -> Walks:
    """By a service with its data in this directory, which the settings of this process mean as well."""
    quiet = {
        "DEMO": "0",
        "ACCESS_LOG": "0",
        "LOG_LEVEL": "WARNING",
        "DJANGO_SETTINGS_MODULE": "config.settings",
    }
    settings = environment(directory, **quiet)
    os.environ.clear()
    os.environ.update(settings)

    import django

    from config.installation import prepare as prepare_installation

    prepare_installation()
    django.setup()
    from django.core.management import call_command

    from .scenarios import Scenarios, prepare, record, record_idle
    from .service import Outside, traced_service

    call_command("migrate", verbosity=0)
    prepare()
    with (
        Outside().serving() as outside,
        traced_service(directory, outside) as service,
        Scenarios(service, outside).listening() as scenarios,
    ):
        idle = record_idle(service, scenarios.tick)
        return {
            name: counted_walk(name, partial(record, service, perform), idle)
            for name, perform in scenarios.all.items()
        }


def counted_walk(name: str, record: Callable[[], list[Run]], idle: set[Stack]) -> list[str]:
    """Again where it is beyond its limit: that may have been chance."""
    runs = record()
    found = walk(runs, idle, PASSED_BY_ALL)
    if too_long(name, figures(found)):
        found = walk(runs + record(), idle, PASSED_BY_ALL)
    return found


def table(walks: Walks) -> str:
    lines = [f"{'':55}" + "".join(f"{name:>9}" for name in Figures._fields)]
    for name, names in walks.items():
        lines.append(f"{name:55}" + "".join(f"{figure:9}" for figure in figures(names)))
    return "\n".join(lines) + "\n"


def spelled_out(name: str, names: list[str]) -> str:
    """A line for each stay in a module."""
    stays = groupby(names, module_of)
    lines = [f"  {module}: {', '.join(functions(stay))}" for module, stay in stays]
    return "\n".join([f"{name}: {said(figures(names))}", *lines])


def functions(names: Iterable[str]) -> list[str]:
    return [name for name, _ in groupby(each.partition(":")[2] for each in names)]


def said(found: Figures) -> str:
    return f"{found.modules} modules, {found.moves} moves, {found.returns} returns"


def too_long(name: str, found: Figures) -> str:
    """Empty where it is not."""
    limit = LIMITS[name]
    if all(figure <= most for figure, most in zip(found, limit, strict=True)):
        return ""
    return f"{name[0].upper()}{name[1:]} takes {said(found)}; its limit is {said(limit)}. {WAY_OUT}\n"


if __name__ == "__main__":
    sys.exit(main())
