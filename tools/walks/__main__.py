"""`make walks`: through how many of our modules five walks pass on a running service. `-v` prints what each
walk calls, in order."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.programs.running import environment

from .counting import Figures, figures, module_of, walk

Walks = dict[str, list[str]]


def main() -> None:
    with TemporaryDirectory(prefix="tickwire-walks-") as directory:
        walks = counted(Path(directory))
    if "-v" in sys.argv:
        print("\n\n".join(spelled_out(name, names) for name, names in walks.items()))
    else:
        print(f"{'':55}" + "".join(f"{name:>9}" for name in Figures._fields))
        for name, names in walks.items():
            print(f"{name:55}" + "".join(f"{figure:9}" for figure in figures(names)))


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
        return {name: walk(record(service, perform), idle) for name, perform in scenarios.all.items()}


def spelled_out(name: str, names: list[str]) -> str:
    """A line for each stay in a module."""
    found = figures(names)
    lines = [f"  {module}: {', '.join(functions(stay))}" for module, stay in groupby(names, module_of)]
    return "\n".join(
        [f"{name}: {found.modules} modules, {found.moves} moves, {found.returns} returns", *lines]
    )


def functions(names: Iterable[str]) -> list[str]:
    return [name for name, _ in groupby(each.partition(":")[2] for each in names)]


if __name__ == "__main__":
    main()
