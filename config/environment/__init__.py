"""The environment: `variables.py` is the table of all variables, and `env` has their values, which are read
together so that all faults are reported at once."""

import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from core.program import IS_CHECKOUT, ROOT

from .kinds import Variable, on_postgresql, on_sqlite, read_database_url
from .variables import VARIABLES

__all__ = [
    "BASE_DIR",
    "FILE",
    "Environment",
    "env",
    "on_postgresql",
    "on_sqlite",
    "read_database_url",
    "var_dir",
]

BASE_DIR = Path(__file__).resolve().parents[2]
FILE = "_FILE"
LARGEST_FILE = 65_536
SHOWN = 60

# DATBASE_URL is DATABASE_URL, and TEST_DATABASE_URL is something else.
ALIKE, SHORTEST_MISSPELT = 0.88, 6


class Environment:
    """Each name has to stand in the table of variables; an empty variable counts as unset."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given

    def text(self, name: str, otherwise: str = "") -> str:
        return str(self._of(name, "text", otherwise))

    def whole(self, name: str, otherwise: int | None = None) -> int:
        return int(self._of(name, "whole", otherwise))

    def number(self, name: str, otherwise: float | None = None) -> float:
        return float(self._of(name, "number", otherwise))

    def switch(self, name: str, *, otherwise: bool | None = None) -> bool:
        return bool(self._of(name, "switch", otherwise))

    def words(self, name: str, otherwise: list[str] | None = None) -> list[str]:
        return list(self._of(name, "words", otherwise))

    def default(self, name: str) -> str:
        """Whatever was given."""
        return str(VARIABLES[name].value_of_default())

    def parsed(self, name: str) -> Any:
        """The result of `read` in the table; None if nothing was given."""
        return self._values[name]

    def secrets(self) -> dict[str, str]:
        """Those that were given, which no log may show."""
        texts, _ = self._texts
        return {name: text for name, text in texts.items() if VARIABLES[name].is_secret}

    def strangers(self) -> Iterator[tuple[str, str]]:
        """Variables that nothing reads, beside the ones that are probably meant."""
        read = VARIABLES.keys() | {f"{name}{FILE}" for name, each in VARIABLES.items() if each.is_secret}
        long = [name for name in read if len(name) >= SHORTEST_MISSPELT]
        for name in sorted(self._given.keys() - read):
            meant = name.removesuffix(FILE)
            close = [meant] if meant in VARIABLES else get_close_matches(name, long, 1, ALIKE)
            if close:
                yield name, close[0]

    def forget_all_but(self, *names: str) -> None:
        """Before the first is read."""
        self._given = {name: text for name, text in self._given.items() if name in names}

    def _of(self, name: str, kind: str, otherwise: Any) -> Any:
        if VARIABLES[name].kind != kind:
            raise TypeError(f"{name} is read as {kind}, and the table has it as {VARIABLES[name].kind}.")
        value = self._values[name]
        return otherwise if value is None else value

    @cached_property
    def _texts(self) -> tuple[dict[str, str], list[str]]:
        texts: dict[str, str] = {}
        faults = []
        for variable in VARIABLES.values():
            try:
                if found := self._text_of(variable):
                    texts[variable.name] = found
            except ImproperlyConfigured as fault:
                faults.append(str(fault))
        return texts, faults

    def _text_of(self, variable: Variable) -> str:
        name = variable.name
        given = self._given.get(name, "")
        path = self._given.get(f"{name}{FILE}", "") if variable.is_secret else ""
        if given and path:
            raise ImproperlyConfigured(
                f"{name} and {name}{FILE} are both set: unset one, so that it is clear which counts."
            )
        return _contents(variable, path) if path else given

    @cached_property
    def _values(self) -> dict[str, Any]:
        texts, faults = self._texts
        values: dict[str, Any] = {}
        for name, variable in VARIABLES.items():
            values[name] = variable.value_of_default()
            if name in texts:
                try:
                    values[name] = variable.value_of(texts[name])
                except ImproperlyConfigured as fault:
                    faults.append(str(fault))
                except (ValueError, LookupError):
                    faults.append(_refusal(variable, texts[name]))
        if values["PRODUCTION"]:
            faults += self._faults_of_production(values)
        if faults:
            raise ImproperlyConfigured("\n".join(dict.fromkeys(faults)))
        return values

    def _faults_of_production(self, values: Mapping[str, Any]) -> Iterator[str]:
        needed = [name for name, variable in VARIABLES.items() if variable.is_needed]
        missing = [name for name in needed if not (self._given.get(name) or self._given.get(f"{name}{FILE}"))]
        if missing:
            yield f"PRODUCTION=1 needs these variables: {', '.join(missing)}."
        if values["DEMO"] or values["DEBUG"]:
            yield "PRODUCTION=1 runs without DEMO and DEBUG: unset both."


def _refusal(variable: Variable, given: str) -> str:
    shown = "what it holds" if variable.is_secret else repr(given[:SHOWN])
    return f"{variable.name} should be {variable.allowed}, not {shown}."


def _contents(variable: Variable, path: str) -> str:
    """Without the newline at the end, which nearly every editor and `echo` leave there."""
    is_list, named = variable.kind == "words", f"{variable.name}{FILE} names {path!r}, which"
    try:
        with Path(path).open(encoding="utf-8") as file:
            found = file.read(LARGEST_FILE + 1).strip("\r\n")
    except OSError as error:
        reason = (error.strerror or "it cannot be read").lower()
        raise ImproperlyConfigured(f"{named} cannot be read: {reason}.") from None
    except UnicodeDecodeError:
        raise ImproperlyConfigured(f"{named} is not text in UTF-8.") from None
    # A file of an optional secret may be empty: the units name it even if it is not used.
    if not found and variable.is_needed:
        raise ImproperlyConfigured(f"{named} is empty.")
    if len(found) > LARGEST_FILE:
        raise ImproperlyConfigured(f"{named} is larger than {LARGEST_FILE:,} characters.")
    if "\n" in found and not is_list:
        raise ImproperlyConfigured(f"{named} has more than one line.")
    return f"{found}\n" if is_list else found


env = Environment(os.environ)


def var_dir() -> Path:
    named = env.text("VAR_DIR")
    folder = (Path(named) if named else _default_folder()).resolve()
    for path in (folder, *folder.parents):
        if os.path.exists(path) and not os.path.isdir(path):
            raise ImproperlyConfigured(f"{path} is not a folder. Name one with --data or VAR_DIR.")
    return folder


def _default_folder() -> Path:
    """Installed, by https://specifications.freedesktop.org/basedir-spec/latest/: no relative path counts."""
    if IS_CHECKOUT:
        return ROOT / "var"
    data_home = Path(env.text("XDG_DATA_HOME"))
    if data_home.is_absolute():
        return data_home / "tickwire"
    try:
        return Path.home() / ".local" / "share" / "tickwire"
    except RuntimeError:
        raise ImproperlyConfigured(
            "There is no home directory to keep the data in. Name a folder with --data or VAR_DIR."
        ) from None
