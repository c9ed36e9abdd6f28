"""Plants a fault in a process that has everything imported: the functions that are there get other code."""

from __future__ import annotations

import gc
import inspect
from collections import defaultdict
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType


class NeedsFreshProcess(Exception):
    """The fault is in what runs as the module is imported."""


def functions_by_file() -> dict[str, list[FunctionType]]:
    # What is frozen is not found.
    gc.unfreeze()
    found: dict[str, list[FunctionType]] = defaultdict(list)
    for each in gc.get_objects():
        # Not isinstance, which wakes what is lazy.
        if type(each) is FunctionType:
            found[each.__code__.co_filename].append(each)
    gc.freeze()
    return found


def plant(path: str, old: str, new: str, functions: Iterable[FunctionType]) -> None:
    """`functions` are those that were made of the file."""
    before, after = (compile(text, path, "exec", dont_inherit=True) for text in (old, new))
    pairs = {place_of(one): other for one, other in changed(before, after)}
    met = 0
    for function in functions:
        code = function.__code__
        other = pairs.get(place_of(code))
        if other is not None and len(code.co_freevars) == len(other.co_freevars):
            function.__code__ = other
            met += 1
    if not met:
        raise NeedsFreshProcess


def place_of(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def changed(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """The functions in which anything differs, with those that contain them and those that they contain."""
    inner = list(zip(nested(old), nested(new), strict=False))
    if own(old) == own(new):
        found = [pair for pairs in inner for pair in changed(*pairs)]
    elif is_function(old):
        found = [each for pair in inner for each in whole(*pair)]
        yield old, new
        yield from found
        return
    else:
        raise NeedsFreshProcess
    if found and is_function(old):
        yield old, new
    yield from found


def whole(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    yield old, new
    for pair in zip(nested(old), nested(new), strict=False):
        yield from whole(*pair)


def is_function(code: CodeType) -> bool:
    return bool(code.co_flags & inspect.CO_OPTIMIZED)


def nested(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def own(code: CodeType) -> tuple[object, ...]:
    """All that runs, without where it stands in the text."""
    constants = tuple(
        each.co_name if isinstance(each, CodeType) else (type(each), repr(each)) for each in code.co_consts
    )
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    counts = code.co_argcount, code.co_kwonlyargcount, code.co_flags
    return code.co_code, constants, names, counts, code.co_exceptiontable
