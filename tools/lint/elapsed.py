"""Refuses what lets a gated test judge speed: comparisons of elapsed time, time-outs that a slow machine
reaches, and pauses in the hope that something has happened by then. Only tests/nightly measures."""

from __future__ import annotations

import ast
import functools
import operator
import re
import sys
from collections import Counter
from collections.abc import Iterator
from enum import IntEnum
from typing import cast

from .modules import ROOMS, ROOT, texts

LEAST_TIMEOUT_S, SHORT_PAUSE_S, MOST_EXCEPTIONS = 120, 0.2, 10

# A path in the repository, with `::function` if only that one is meant: why it may.
EXCEPTIONS = {
    "tests/databases/prepared.py": "databases of migrations that no run has used for a week go",
    "tests/clients/test_unreachable.py": "the client's own time-out, against a server that never answers",
    "tests/news/language/test_language_models.py": "the product's own, against an endpoint that hangs",
}

COMPARED = "a clock is compared: wait with tests/patience.py, and assert what came and in which order"
BRIEF = f"a time-out below {LEAST_TIMEOUT_S} s: PATIENCE_S, which only guards against hanging"
UNNAMED = "gives up after some seconds of its own: name PATIENCE_S"
PAUSE = "a fixed pause: wait with tests/patience.py for what must have happened by then"

CLOCKS = re.compile(r"time\.(monotonic|perf_counter|time|\w+_time)(_ns)?|(.*[._])?loop(\(\))?\.time")
KEEPS_THE_KIND = re.compile(r"int|float|round|abs|min|max|sum|sorted|list|set|statistics\..*|asyncio\.run")
ADDS = ("append", "add", "extend", "put", "put_nowait")
# Whose time-outs are parameters under test; and clocks that the test holds.
PRODUCT = re.compile(rf"({'|'.join(ROOMS)}|tickwire)\..*")
HELD = re.compile(r"(.*\.)?(clock|turns|world)\.wait")
KEYWORDS = ("timeout", "timeout_s", "within_s", "open_timeout", "wait_s", "connect_timeout", "socket_timeout")
# Whose first argument is a time-out, and whose second.
FIRST = r"(asyncio|httpx)\.[tT]imeout|.*\.(settimeout|join|wait|result|set_default(_navigation)?_timeout)"
SECOND = r"asyncio\.wait_for|socket\.create_connection|tests\.patience\.(wait_)?until|.*\.communicate"
IN_MS = re.compile(r".*\.(to_|not_to_|wait_for_|expect_|set_|goto|click|fill|press|check).*")
# What gives up where no time-out is named.
IMPATIENT = {
    "timeout": r"httpx\.(get|post|put|patch|delete|head|options|request|stream|Client|AsyncClient)",
    "open_timeout": r"websockets\.(.*\.)?(connect|unix_connect)",
}
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


class Kind(IntEnum):
    NO_TIME, MOMENT, SHIFTED, DURATION, PATIENCE = range(5)


class Module:
    """What is known of one file: where its names come from, which are constants, and which hold time."""

    def __init__(self, text: str) -> None:
        self.nodes: list[ast.AST] = [ast.parse(text)]
        self.origins: dict[str, str] = {}
        self.types: dict[str, ast.expr] = {}
        self.kinds = Counter[str]()
        # The outermost function around a node, and the nearest.
        self.around = {self.nodes[0]: ("", "")}
        stored = Counter[str]()
        for node in self.nodes:
            outermost, nearest = self.around[node]
            match node:
                case ast.Import(names=names):
                    self.origins |= {name.asname: name.name for name in names if name.asname}
                case ast.ImportFrom(module=str(module), names=names):
                    self.origins |= {name.asname or name.name: f"{module}.{name.name}" for name in names}
                case ast.Name(ctx=ast.Store()):
                    stored[self._key(node)] += 1
                case ast.arg(annotation=annotation):
                    stored[self._key(node)] += 1
                    self.types |= {self._key(node): annotation} if annotation else {}
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    outermost, nearest = outermost or node.name, node.name
                    self.types |= {f" {nearest}()": node.returns} if node.returns else {}
            children = list(ast.iter_child_nodes(node))
            self.around |= dict.fromkeys(children, (outermost, nearest))
            self.nodes += children
        self.assigned = [pair for node in self.nodes for pair in assigned(node)]
        self.constants = {key: value for to, value in self.assigned if stored[key := self._key(to)] == 1}
        self.types |= {name: value for name, value in self.constants.items() if isinstance(value, ast.Call)}

    def follow(self) -> Module:
        for _ in range(2):  # What stands further down may be used above.
            for to, value in self.assigned:
                self.kinds[self._key(to)] = max(self.kinds[self._key(to)], self.kind(value))
        return self

    def _key(self, to: ast.AST) -> str:
        outermost, nearest = self.around.get(to, ("", ""))
        match to:
            case ast.Attribute(attr=name):
                return f".{name}"
            case ast.Name(id=name) | ast.arg(arg=name):
                return f"{outermost} {name}"
            case ast.Return():
                return f"{outermost if outermost != nearest else ''} {nearest}()"
            case ast.Subscript(value=ast.Return() as value, slice=ast.Constant(value=place)):
                return f"{self._key(value)}[{place!r}]"
            case ast.Subscript(value=value) | ast.Starred(value=value):
                return self._key(value)
        return ""

    def _look(self, found: dict[str, ast.expr], node: ast.Name) -> ast.expr | None:
        return found.get(self._key(node), found.get(f" {node.id}"))

    def origin(self, node: ast.AST, depth: int = 3) -> str:
        """The name by which other modules know it, or its type."""
        match node:
            case ast.Name(id=name):
                of_type = self._look(self.types, node) if depth and name not in self.origins else None
                return self.origin(of_type, depth - 1) if of_type else self.origins.get(name, name)
            case ast.Attribute(value=value, attr=attr):
                return f"{self.origin(value, depth)}.{attr}"
            case ast.Call(func=ast.Name(id=name)) if f" {name}()" in self.types:
                return f"{self.origin(self.types[f' {name}()'])}()"
            case ast.Call(func=func):
                return f"{self.origin(func, depth)}()"
        return ""

    def number(self, node: ast.AST) -> float | None:
        match node:
            case ast.Constant(value=int() | float() as value):
                return value
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                a, b = self.number(left), self.number(right)
                return None if a is None or b is None else OPERATORS[type(op)](a, b or 1e-9)
            case ast.Name() if constant := self._look(self.constants, node):
                return self.number(constant)
            case ast.Name() | ast.Attribute():
                place, _, name = self.origin(node).rpartition(".")
                home = module_named(place)
                found = home.constants.get(f" {name}") if home else None
                return home.number(found) if home and found else None
        return None

    def kind(self, node: ast.AST, part: str = "") -> int:
        """Of the whole, or of one part of what a call returns."""
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) if "PATIENCE" in name:
                return Kind.PATIENCE
            case ast.Name(id=name):
                return max(self.kinds[f"{self.around[node][0]} {name}"], self.kinds[f" {name}"])
            case ast.Attribute(attr=name):
                return max(self.kinds[f".{name}"], self.kinds[f" {name}()"])
            case ast.Call():
                return self._kind_of_call(node, part)
            case ast.BinOp():
                return self._kind_of_sum(node)
            case ast.Tuple(elts=values) | ast.List(elts=values) | ast.BoolOp(values=values):
                return max(map(self.kind, values), default=Kind.NO_TIME)
            case ast.Subscript(value=value, slice=place):
                return self.kind(value, f"[{ast.unparse(place)}]")
            case ast.GeneratorExp(elt=value) | ast.ListComp(elt=value) | ast.IfExp(body=value):
                return self.kind(value)
            case ast.Await(value=value) | ast.Starred(value=value) | ast.NamedExpr(value=value):
                return self.kind(value, part)
        return Kind.NO_TIME

    def _kind_of_call(self, call: ast.Call, part: str) -> int:
        name = self.origin(call.func)
        if KEEPS_THE_KIND.fullmatch(name):
            return max((self.kind(value, part) for value in call.args), default=Kind.NO_TIME)
        if CLOCKS.fullmatch(name):
            return Kind.MOMENT
        if name == "tests.patience.wait_until":
            return Kind.DURATION
        place, _, function = name.rpartition(".")
        kinds, returned = (module_named(place) or self).kinds, f" {function}(){part}"
        return max(kinds[returned], kinds[self.around[call][0] + returned])

    def _kind_of_sum(self, node: ast.BinOp) -> int:
        left, right = self.kind(node.left), self.kind(node.right)
        is_scaled = isinstance(node.op, ast.Mult | ast.Div | ast.FloorDiv)
        if is_scaled or max(left, right) not in (Kind.MOMENT, Kind.SHIFTED):
            return max(left, right)
        is_since = isinstance(node.op, ast.Sub) and left and self.number(node.right) is None
        return Kind.DURATION if is_since else Kind.SHIFTED

    def findings(self) -> Iterator[tuple[ast.expr | ast.arg, str]]:
        asserts = [node.test for node in self.nodes if isinstance(node, ast.Assert)]
        asserted = {inner for test in asserts for inner in ast.walk(test)}
        paces = {node.test for node in self.nodes if isinstance(node, ast.While)}
        paces |= {test.operand for test in paces if isinstance(test, ast.UnaryOp)}
        for node in self.nodes:
            match node:
                case ast.Compare(left=left, ops=ops, comparators=others):
                    sides = zip([left, *others], ops, others, strict=False)
                    if any(self._is_of_time(*each, node in asserted) for each in sides):
                        yield node, COMPARED
                case ast.Call() if node not in paces:
                    yield from ((node, what) for what in self._impatience(node))
        for to, value in self.assigned:
            if isinstance(to, ast.arg) and to.arg in KEYWORDS and self._is_brief(value):
                yield to, BRIEF

    def _is_of_time(self, left: ast.expr, op: ast.cmpop, right: ast.expr, is_asserted: bool) -> bool:
        kinds, written = [self.kind(left), self.kind(right)], ast.unparse(left) + ast.unparse(right)
        longest_s = max(self.number(left) or 0, self.number(right) or 0) / (1000 if "_ms" in written else 1)
        if Kind.PATIENCE in kinds or longest_s >= LEAST_TIMEOUT_S:
            return False
        if isinstance(op, ast.Gt | ast.GtE):
            kinds.reverse()
        elif not isinstance(op, ast.Lt | ast.LtE):
            return isinstance(op, ast.Eq | ast.In) and Kind.DURATION in kinds
        # A slow machine only makes longer what lasts at least so long; and moments in order are order.
        if is_asserted and kinds == [Kind.NO_TIME, Kind.DURATION]:
            return False
        return max(kinds) > Kind.MOMENT or not is_asserted and Kind.MOMENT in kinds and Kind.NO_TIME in kinds

    def _impatience(self, call: ast.Call) -> Iterator[str]:
        name, keywords = self.origin(call.func), {keyword.arg: keyword.value for keyword in call.keywords}
        if name in ("time.sleep", "asyncio.sleep") or name.endswith(".wait_for_timeout"):
            pause_s = (self.number(call.args[0]) or 0) / (1 if name.endswith("sleep") else 1000)
            if SHORT_PAUSE_S <= pause_s < LEAST_TIMEOUT_S:
                yield PAUSE
        elif not PRODUCT.fullmatch(name) and not HELD.fullmatch(ast.unparse(call.func)):
            values = [value for keyword, value in keywords.items() if keyword in KEYWORDS]
            places = [place for place, names in enumerate((FIRST, SECOND)) if re.fullmatch(names, name)]
            values += [call.args[place] for place in places if place < len(call.args)]
            if any(self._is_brief(value, 1000 if IN_MS.fullmatch(name) else 1) for value in values):
                yield BRIEF
            for keyword, names in IMPATIENT.items():
                if re.fullmatch(names, name) and not {keyword, None, "transport"} & {*keywords}:
                    yield UNNAMED

    def _is_brief(self, value: ast.expr, unit: float = 1) -> bool:
        return 0 < (self.number(value) or 0) < LEAST_TIMEOUT_S * unit


def assigned(node: ast.AST) -> Iterator[tuple[ast.AST, ast.expr]]:
    """What gets which value, for all that passes one on."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            yield from zip(targets, values, strict=False)
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
            yield from ((to, ast.Subscript(value, ast.Constant(place))) for place, to in enumerate(targets))
        case ast.Assign(targets=[to], value=value):
            yield to, value
        case ast.AnnAssign() | ast.NamedExpr() | ast.AugAssign() if node.value:
            yield node.target, node.value
        case ast.For() | ast.comprehension():
            yield node.target, node.iter
        case ast.Call(func=ast.Attribute(value=to, attr=attr), args=[*_, value]) if attr in ADDS:
            yield to, value
        case ast.Return(value=ast.Tuple(elts=values)):
            whole = cast(ast.expr, node)
            yield from ((ast.Subscript(whole, ast.Constant(place)), one) for place, one in enumerate(values))
        case ast.Return(value=ast.expr() as value):
            yield node, value
        case ast.arguments(args=args, defaults=defaults, kwonlyargs=others, kw_defaults=rest):
            yield from zip(reversed(args), reversed(defaults), strict=False)
            yield from ((to, value) for to, value in zip(others, rest, strict=True) if value)


@functools.cache
def module_named(name: str) -> Module | None:
    path = ROOT.joinpath(*name.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if name and file.is_file():
            module = Module(file.read_text())
            return module.follow() if name.startswith("tests.") else module
    return None


def judged(found: list[tuple[str, str, int, str]], exceptions: dict[str, str]) -> Iterator[str]:
    """What is wrong: each finding has its path, function, line and text."""
    used = set[str]()
    for path, function, line, what in found:
        excused = exceptions.keys() & {path, f"{path}::{function}"}
        used |= excused
        if not excused:
            yield f"{path}:{line}: {what}"
    yield from (f"{exception}: an exception that nothing needs" for exception in exceptions.keys() - used)
    if len(exceptions) > MOST_EXCEPTIONS:
        yield f"{len(exceptions)} exceptions, of which {MOST_EXCEPTIONS} are allowed"


def main() -> int:
    found = []
    for path, text in texts("tests").items():
        if not path.startswith("tests/nightly/"):
            module = Module(text).follow()
            found += [(path, module.around[node][0], node.lineno, what) for node, what in module.findings()]
    wrong = list(judged(found, EXCEPTIONS))
    folders = Counter("/".join(line.split(":")[0].split("/")[:2]) for line in wrong)
    print(*wrong, f"elapsed time: {len(wrong)} findings", sep="\n")
    print(*(f"{number:5} {folder}" for folder, number in folders.most_common()), sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
