"""A Markdown text as HTML, with its headings, coloured code and passages for the search."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import groupby, takewhile
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import NamedTuple
from urllib.parse import urldefrag, urlsplit

from django.conf import settings
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Number, String, _TokenType
from pygments.util import ClassNotFound

# Code in colour: each part is a span with one of a few classes, which static/docs/code.css colours.
CLASSES = (
    (Comment, "c"),
    (Keyword, "k"),
    (String, "s"),
    (Number, "n"),
    (Name.Tag, "f"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Attribute, "f"),
    (Name.Builtin, "f"),
    (Name.Variable, "v"),
)


@lru_cache(maxsize=1024)
def highlighted(text: str, language: str) -> SafeString:
    lexer = lexer_of(language)
    if lexer is None:
        return escape(text)
    named = ((class_of(kind), value) for kind, value in lexer.get_tokens(text))
    parts = (
        (name, escape("".join(value for _, value in group)))
        for name, group in groupby(named, key=lambda each: each[0])
    )
    html = "".join(f'<span class="h-{name}">{value}</span>' if name else value for name, value in parts)
    return mark_safe(html)  # noqa: S308 - each part is escaped above


@lru_cache(maxsize=64)
def lexer_of(language: str) -> Lexer | None:
    """None for an unknown language, which is shown without colours."""
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False) if language else None
    except ClassNotFound:
        return None


def class_of(kind: _TokenType) -> str:
    return next((name for found, name in CLASSES if kind in found), "")


LEVELS = {"h1": 1, "h2": 2, "h3": 3}
# A command or a JSON text is read as well in several lines, and copied as one.
WRAPPED = {"bash", "console", "http", "json", "sh"}
SHORT_CELL = 20
FIGURE_COLUMNS, FIGURE_CELL = 4, 42
# Marks between which a benchmark or a test writes its results.
COMMENT = re.compile(r"^<!-- .* -->$", re.MULTILINE)
Address = Callable[[str], str | None]
"""Where a relative link leads on the site; None if its target is not served."""


class DocumentHeading(NamedTuple):
    title: str
    anchor: str
    level: int


class Passage(NamedTuple):
    """The text below a heading, without markup."""

    heading: DocumentHeading
    text: str


class Rendered(NamedTuple):
    html: SafeString
    passages: list[Passage]

    @property
    def title(self) -> str:
        return self.passages[0].heading.title if self.passages else ""

    @property
    def headings(self) -> list[DocumentHeading]:
        return [passage.heading for passage in self.passages if passage.heading.level == 2]


def render_markdown(text: str, address: Address) -> Rendered:
    tokens = parser.parse(COMMENT.sub("", text))
    name_headings(tokens)
    for token in tokens:
        token.children = list(addressed(token.children, address)) if token.children else token.children
    html = parser.renderer.render(tokens, parser.options, {})
    return Rendered(mark_safe(html), list(passages(tokens)))  # noqa: S308 - the parser escapes raw HTML


def name_headings(tokens: Sequence[Token]) -> None:
    taken: dict[str, int] = {}
    for opened, inline in zip(tokens, tokens[1:], strict=False):
        if opened.type == "heading_open":
            name = anchor_of(plain_text(inline))
            again = taken[name] = taken.get(name, -1) + 1
            opened.attrSet("id", f"{name}-{again}" if again else name)


def anchor_of(title: str) -> str:
    """As GitHub makes them, so that a link to a heading works there and here."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def addressed(children: Sequence[Token], address: Address) -> Iterator[Token]:
    """With the links and images of this site. A link that leads nowhere here becomes plain text."""
    dropped = 0
    for token in children:
        if token.type == "link_open":
            target = address(str(token.attrs["href"]))
            if target is None:
                dropped += 1
                continue
            token.attrSet("href", target)
        elif token.type == "link_close" and dropped:
            dropped -= 1
            continue
        elif token.type == "image":
            token.attrSet("src", address(str(token.attrs["src"])) or "")
            token.attrSet("loading", "lazy")
        yield token


def plain_text(token: Token) -> str:
    if token.children:
        return "".join(plain_text(child) for child in token.children)
    return " " if token.type in ("softbreak", "hardbreak") else token.content


def passages(tokens: Sequence[Token]) -> Iterator[Passage]:
    heading, words = DocumentHeading("", "", 1), list[str]()
    for before, token in zip([None, *tokens], tokens, strict=False):
        if before is not None and before.type == "heading_open":
            if heading.title:
                yield Passage(heading, " ".join(words))
            level = LEVELS.get(before.tag, 4)
            heading, words = DocumentHeading(plain_text(token), str(before.attrs["id"]), level), []
        elif token.type in ("inline", "fence", "code_block"):
            words.append(" ".join(plain_text(token).split()))
    if heading.title:
        yield Passage(heading, " ".join(words))


def with_marks(text: str, address: Address = str) -> SafeString:
    """A text in one paragraph."""
    (inline,) = parser.parseInline(text)
    inline.children = list(addressed(inline.children or (), address))
    html: str = parser.renderer.render([inline], parser.options, {})
    return mark_safe(html)  # noqa: S308 - the parser escapes raw HTML


def code_figure(code: str, language: str) -> str:
    html = highlighted(code.rstrip(), language)
    wraps = " wraps" if language in WRAPPED else ""
    return f'<figure class="code{wraps}"><pre tabindex="0"><code>{html}</code></pre></figure>'


def cell_opened(token: Token) -> str:
    """The parser would align by a style, which our pages do not allow."""
    is_right = "right" in str(token.attrs.get("style", ""))
    return f'<{token.tag} class="num right">' if is_right else f"<{token.tag}>"


class PageRenderer(RendererHTML):
    def fence(self, tokens: Sequence[Token], idx: int, options: object, env: object) -> str:
        return code_figure(tokens[idx].content, tokens[idx].info.strip())

    def code_block(self, tokens: Sequence[Token], idx: int, options: object, env: object) -> str:
        return code_figure(tokens[idx].content, "")

    def heading_open(self, tokens: Sequence[Token], idx: int, options: object, env: object) -> str:
        return f'<{tokens[idx].tag} id="{escape(str(tokens[idx].attrs["id"]))}">'

    def heading_close(self, tokens: Sequence[Token], idx: int, options: object, env: object) -> str:
        opened = tokens[idx - 2]
        if opened.tag == "h1":
            return "</h1>\n"
        title, anchor = escape(plain_text(tokens[idx - 1])), escape(str(opened.attrs["id"]))
        link = f'<a class="anchor" href="#{anchor}" aria-label="Link to {title}"></a>'
        return f"{link}</{opened.tag}>\n"

    def th_open(self, tokens: Sequence[Token], idx: int, options: object, env: object) -> str:
        return cell_opened(tokens[idx])

    def td_open(self, tokens: Sequence[Token], idx: int, options: object, env: object) -> str:
        return cell_opened(tokens[idx])

    def table_open(self, tokens: Sequence[Token], idx: int, options: object, env: object) -> str:
        of_table = list(takewhile(lambda each: each.type != "table_close", tokens[idx + 1 :]))
        kind = ' class="short"' if is_short(of_table) else ' class="figures"' if has_figures(of_table) else ""
        return f'<div class="scroll" tabindex="0" role="group" aria-label="Table"><table{kind}>\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: object, env: object) -> str:
        return "</table></div>\n"


def is_short(table: Iterable[Token]) -> bool:
    """A table of single words and numbers, whose cells may be narrow."""
    return longest_cell(table) <= SHORT_CELL


def has_figures(table: Sequence[Token]) -> bool:
    """A table of many columns of figures, which would be illegible in narrow cells."""
    columns = sum(token.type == "th_open" for token in table)
    begin = next((at for at, token in enumerate(table) if token.type == "tbody_open"), len(table))
    return columns >= FIGURE_COLUMNS and longest_cell(table[begin:]) <= FIGURE_CELL


def longest_cell(tokens: Iterable[Token]) -> int:
    return max((len(cell.content) for cell in tokens if cell.type == "inline"), default=0)


parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=PageRenderer).enable("table")


# The project's own documents: docs/**/*.md under /docs, and the images that they show.
FOLDER = settings.BASE_DIR / "docs"
IMAGES = {".png": "image/png", ".svg": "image/svg+xml", ".jpg": "image/jpeg", ".webp": "image/webp"}
# Files beside the folder that have pages of their own.
BESIDE = {
    "../CHANGELOG.md": "/docs/changelog",
    "../README.md": "/docs",
    "../clients/python/README.md": "/docs/clients",
    "../clients/typescript/README.md": "/docs/clients",
    "../templates/docs/about.md": "/docs/api",
}


@cache
def names() -> tuple[str, ...]:
    """Of all documents, without `.md`: `signals`, `operate/install`."""
    return tuple(sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.md")))


@cache
def document(name: str) -> Rendered:
    """Read once: the files change only with the version."""
    text = (FOLDER / f"{name}.md").read_text()
    return render_markdown(text, lambda link: address_of(link, PurePosixPath(name).parent))


def title_of(name: str) -> str:
    """Without reading the rest, because every page lists all titles."""
    with (FOLDER / f"{name}.md").open() as file:
        return file.readline().removeprefix("# ").strip()


def address_of(link: str, folder: PurePosixPath) -> str | None:
    if urlsplit(link).scheme or link.startswith(("#", "/")):
        return link
    path, fragment = urldefrag(link)
    path = normpath(folder / path)
    page = page_of(path)
    return f"{page}#{fragment}" if page and fragment else page


def page_of(path: str) -> str | None:
    if path in BESIDE:
        return BESIDE[path]
    if path.removesuffix(".md") in names():
        return f"/docs/{path.removesuffix('.md')}"
    return f"/docs/{path}" if image(path) else None


def image(path: str) -> Path | None:
    """Only an image within the folder, whatever the path says."""
    found: Path = (FOLDER / path).resolve()
    if found.suffix in IMAGES and found.is_relative_to(FOLDER.resolve()) and found.is_file():
        return found
    return None
