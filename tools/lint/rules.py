"""What protects the structure. Each rule yields what is wrong; its docstring says the way out."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from .modules import PARTS, STEPS, Import, Product, room_of

STEP_OF = {room: number for number, step in enumerate(STEPS) for room in step} | {"tests": -1, "tools": -1}
STEP_OF_PART = {
    (room, part): number for room in PARTS for number, step in enumerate(PARTS[room]) for part in step
}
# The wiring sees all rooms. The platform and the server are made to be imported piece by piece, and a door of
# the streams would bring sockets into those of their modules that are pure.
SEES_ALL, OPEN = "config", ("core.", "serving.", "market.streams.")
# In them Django calls `ready` when there are models, and not before.
READY = re.compile(r"\w+\.apps")
# Libraries that may be missing, or cost more than most commands need.
LATE = re.compile(
    r"psycopg|redis\.(asyncio\.connection|connection|exceptions)|onnxruntime|tokenizers|numpy|boto3"
    r"|botocore(\.config)?|urllib3\.exceptions|pyarrow(\.(compute|csv|parquet))?"
)
# Where Django and its libraries demand a name in words; and data that only looks like one.
NAMED_BY_DJANGO = re.compile(r"config/(settings|asgi)\.py|.*(apps|urls)\.py")
TEXTS = ("accounts.page_tokens", "accounts.demo_login", "accounts.known_device", "accounts.access")
# Modules, or packages with all that is in them: tested as tables.
PURE = {
    "accounts": "key_text",
    "analysis": "answer built_in drivers facts",
    "core": "events.kinds plain_json steady_clock",
    "demo": "publisher_rules",
    "instruments": "facts hours sheets",
    "market": "engine.admission engine.bus.journal engine.venues.venue_quotes engine.files"
    " engine.importing.minutes engine.importing.tally"
    " prices simulated streams.asyncapi streams.chaos streams.hub.delivery"
    " streams.hub.subscribers streams.protocol.messages streams.protocol.reading"
    " streams.protocol.subscriptions streams.resume streams.wire",
    "news": "addresses ingest.parsing ingest.stories labels language sentiment.linear sentiment.signs",
    "pages": "watchlist",
    "serving": "draining findings http.bounds websocket.bounds websocket.connection workers.slot",
    "signals_feed": "bundle.writing contradictions exits judge ledger.proof ledger.trigger_rules levels"
    " marks publishers.purses publishers.record"
    " record rules venue_days wire",
    "status": "picture",
    "transparency": "checkpoints keys merkle",
}
IMPURE = re.compile(r"(django|rest_framework|channels|time|asyncio|redis|psycopg|random|prometheus_client)\b")
ENCODES = re.compile(r"(json\.encode|json\.Encoder|json\.dumps|JsonResponse)\(")
ANSWERS = re.compile(r"\bdjango\.http\b|\brest_framework\b|Response\b|\bOutgoingFrame\b")
# What answers with JSON past core.plain_json.
SPELLED_OUT = {
    "market/streams/wire.py": "a number that needs it is spelled out",
    "news/language_models.py": "to a language model",
    "pages/documents/samples.py": "no number with a fraction",
    "pages/documents/stream_reference.py": "spelled out",
    "serving/readiness.py": "texts alone",
    "signals_feed/publishing/pages.py": "prices as texts, for our own page",
}
# What reads the environment: the door of the table of variables, and a probe that runs by itself.
READERS = ("config/environment/__init__.py", "deploy/ready.py")
WAYS_IN = ("environ", "environb", "getenv", "getenvb")
# Named with an underscore, but documented.
PUBLIC = "_replace _asdict _fields _meta _default_manager _exit"
# Of Twisted, allauth, uvicorn and Django, which offer what a test needs under no other name.
NEEDED = (
    "_asyncioEventloop _AUTHENTICATION_METHODS_USER_SESSION_KEY _TrustedHosts _commit"
    " _dont_enforce_csrf_checks _fixture_teardown _get_test_db_name _messages _raw_delete _registry"
    " _set_running_loop"
)
Rule = Callable[[Product], Iterator[str]]


def said(found: Import) -> str:
    return f"{found.where} → {found.module}{'.' if found.name else ''}{found.name}"


def order_of_rooms(product: Product) -> Iterator[str]:
    """Move what these import to a lower room, or connect a signal in `ready`; tests are not installed"""
    for each in product.imports:
        importer, imported = room_of(each.importer), room_of(each.module)
        if importer != imported and STEP_OF.get(imported, len(STEPS)) <= STEP_OF[importer]:
            yield said(each)


def order_of_parts(product: Product) -> Iterator[str]:
    """Move what these import to a part below; PARTS has the order, and the parts that there are"""
    for each in product.own_imports:
        importer, imported = part_of(each.importer), part_of(each.module)
        is_within = importer != imported and importer[0] == imported[0] and importer[0] in PARTS
        if is_within and STEP_OF_PART.get(imported, -1) <= STEP_OF_PART.get(importer, -1):
            yield said(each)
    parts = {part for name in product.modules if (part := part_of(name))[0] in PARTS and part[1]}
    listed = {part for part in STEP_OF_PART if part in parts or part[0] in product.modules}
    yield from (f"{'.'.join(part)}: is, or is in PARTS, but not both" for part in sorted(parts ^ listed))


def part_of(name: str) -> tuple[str, str]:
    room, _, rest = name.partition(".")
    return room, rest.partition(".")[0]


def doors(product: Product) -> Iterator[str]:
    """Two components deep at most: a module of the app, or a name in the `__all__` of one of its packages"""
    for each in product.own_imports:
        importer = room_of(each.importer)
        if importer in (room_of(each.module), SEES_ALL) or f"{each.module}.".startswith(OPEN):
            continue
        if each.module.count(".") > 1 or each.name not in offered(product, each.module, each.name):
            yield said(each)


def offered(product: Product, name: str, default: str) -> list[str]:
    """By the `__all__` of a package. A module offers all that is in it."""
    module = product.modules.get(name)
    if module is None or not module.is_package:
        return [default]
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def circles(product: Product) -> Iterator[str]:
    """Hand one of them what it needs of the other, or move what both need to a third"""
    needs: dict[str, set[str]] = {name: set() for name in product.modules}
    for each in product.own_imports:
        # A package that hands out its own parts is no circle.
        nested = sorted((f"{each.importer}.", f"{each.module}."), key=len)
        if each.module in needs and not nested[1].startswith(nested[0]):
            needs[each.importer].add(each.module)
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        yield " → ".join(error.args[1])


def purity(product: Product) -> Iterator[str]:
    """Pure modules, with what they import, know neither Django nor the clock: the caller hands it over"""
    imports: dict[str, list[Import]] = {name: [] for name in product.modules}
    for each in product.imports:
        if not each.is_for_types:
            imports[each.importer].append(each)
    for pure in (f"{room}.{name}" for room, names in PURE.items() for name in names.split()):
        names = [name for name in imports if f"{name}.".startswith(f"{pure}.")]
        found = {said(each) for each in brought(names, imports) if IMPURE.match(each.module)}
        yield from (f"{pure} brings {each}" for each in sorted(found))
        if not names and room_of(pure) in product.modules:
            yield f"{pure}: no such module; give its new name in PURE"


def brought(names: list[str], imports: Mapping[str, list[Import]]) -> Iterator[Import]:
    """What the modules import that Python executes to import these: they, their packages, and theirs."""
    seen, todo = set[str](), [*names]
    while todo:
        one = todo.pop()
        if one in seen or one not in imports:
            continue
        seen.add(one)
        yield from imports[one]
        parts = one.split(".")
        todo += [".".join(parts[:length]) for length in range(1, len(parts))]
        todo += [each.module for each in imports[one] if not each.is_late]


def late_imports(product: Product) -> Iterator[str]:
    """Import these at the head of the module; end the circle; what may be missing stands in LATE"""
    for each in product.imports:
        is_known = LATE.fullmatch(each.module) or READY.fullmatch(each.importer)
        if each.is_late and not is_known:
            yield said(each)


def names_in_strings(product: Product) -> Iterator[str]:
    """Import what these texts name; if one is data, it belongs in TEXTS"""
    for module in product.modules.values():
        texts = (node for node in ast.walk(module.tree) if isinstance(node, ast.Constant))
        if not NAMED_BY_DJANGO.fullmatch(module.path):
            names = ((node.lineno, node.value) for node in texts if is_name(product, node.value))
            yield from (f"{module.path}:{line} {name!r}" for line, name in names)


def is_name(product: Product, text: object) -> bool:
    if text in TEXTS or not isinstance(text, str) or not re.fullmatch(r"[a-z_]+(\.\w+)+", text):
        return False
    parts = text.split(".")
    return any(".".join(parts[:length]) in product.modules for length in range(2, len(parts) + 1))


def constants(product: Product) -> Iterator[str]:
    """Give one of them another name: the second value under a name hides the first"""
    for module in product.modules.values():
        seen = set[str]()
        for node in module.tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            for name in (each.id for each in targets if isinstance(each, ast.Name)):
                if name.isupper() and name in seen:
                    yield f"{module.path}:{node.lineno} {name}"
                seen.add(name)


def encoding(product: Product) -> Iterator[str]:
    """No number that is served has an exponent: let core.plain_json encode it, or say why in SPELLED_OUT"""
    for path, text in product.texts.items():
        if ENCODES.search(text) and ANSWERS.search(text) and path not in SPELLED_OUT:
            yield path


def environment(product: Product) -> Iterator[str]:
    """Put the variable into config/environment/variables and config/settings.py"""
    for module in product.modules.values():
        if module.path not in READERS:
            yield from (f"{module.path}:{line}" for line in reads_of_environment(module.tree))


def reads_of_environment(tree: ast.AST) -> Iterator[int]:
    """Setting a variable, or handing all of them on to a process with some changed, reads none."""
    fine = {part for node in ast.walk(tree) for part in set_or_handed_on(node)}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) | ast.Constant(value=name) if name in WAYS_IN:
                if node not in fine:
                    yield node.lineno
            case ast.alias(name=name, asname=str()) if name in WAYS_IN:
                yield node.lineno


def set_or_handed_on(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=environ, attr="setdefault"))):
            yield environ
        case ast.Subscript(value=environ, ctx=ast.Store() | ast.Del()):
            yield environ
        case ast.keyword(arg="env", value=ast.BinOp(op=ast.BitOr()) as whole):
            yield from (whole.left, whole.right)
        case ast.Call(func=ast.Attribute(attr="execve"), args=[*_, ast.BinOp(op=ast.BitOr()) as whole]):
            yield from (whole.left, whole.right)


def private_names(tests: Product) -> Iterator[str]:
    """Tests hold to what is public; for a library's name see NEEDED"""
    used = set[str]()
    for module in tests.modules.values():
        for name, line in private_names_of(module.tree):
            used.add(name)
            if name not in NEEDED.split():
                yield f"{module.path}:{line} {name}"
    if "tests" in tests.modules:
        yield from (f"{name}: no test needs it" for name in NEEDED.split() if name not in used)


def private_names_of(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls") | ast.Call(func=ast.Name(id="super"))):
                pass
            case ast.Attribute(attr=name) | ast.alias(name=name) if re.match(r"_[^_]", name):
                if name not in PUBLIC.split():
                    yield name, node.lineno


OF_ROOMS: tuple[Rule, ...] = (order_of_rooms, order_of_parts, doors, circles, purity, late_imports)
OF_ROOMS += (names_in_strings, constants, encoding, environment)
OF_PROGRAMS: tuple[Rule, ...] = (environment,)
OF_TESTS: tuple[Rule, ...] = (private_names,)
