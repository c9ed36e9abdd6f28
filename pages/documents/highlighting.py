"""Code in colour: each part is a span with one of a few classes, which static/docs/code.css colours."""

from functools import lru_cache
from itertools import groupby

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Number, String, _TokenType
from pygments.util import ClassNotFound

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
    """None for a language that nobody knows: it is shown as it stands."""
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False) if language else None
    except ClassNotFound:
        return None


def class_of(kind: _TokenType) -> str:
    return next((name for found, name in CLASSES if kind in found), "")
