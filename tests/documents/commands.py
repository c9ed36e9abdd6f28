"""The commands that a page of docs/operate shows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs/operate").glob("*.md"))
BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
# What the shell itself understands.
SHELL = re.compile(
    r"(cd|cp|echo|grep|ln|rm|sed|set|\.|\[|(?:\./|deploy/)make-secrets|for|do|done|break|printf|ulimit|[A-Z_]+=.*)$"
)
INLINE = re.compile(r"`([^`\n]+)`")
# In running text a name in backquotes is a command only if it begins like one.
PROGRAMS = re.compile(
    r"(tickwire-server|manage\.py|make|uvx?|pipx|curl|psql|pg_\w+|redis-cli|journalctl|systemctl|docker|nginx|haproxy"
    r"|caddy|promtool|kill|openssl|python3)\s"
)


def commands(page: Path) -> Iterator[str]:
    """The first of each pipe: what comes behind it only shows."""
    text = page.read_text()
    for block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            yield from parts(line)
    without = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    # Markdown's other way of writing a block; the text of a list stands three spaces in.
    for line in re.findall(r"^ {4,}(\S.*)$", without, re.MULTILINE):
        if PROGRAMS.match(f"{line} "):
            yield from parts(line)
    for span in INLINE.findall(without):
        if PROGRAMS.match(span):
            yield from parts(span)


def parts(line: str) -> Iterator[str]:
    words = shlex.shlex(line, posix=False, punctuation_chars=True)
    words.whitespace_split = True
    is_piped, command = False, list[str]()
    for word in [*words, ";"]:
        if not command and set(word) <= set("()"):
            continue
        if not set(word) <= set("|&;"):
            command.append(word)
            continue
        if command and not is_piped and not SHELL.match(command[0]):
            yield " ".join(command)
        is_piped, command = word == "|", []


def sub_commands(page: str) -> list[str]:
    """Those of our own program, without its name."""
    begin = "tickwire-server "
    return [
        each.removeprefix(begin) for each in commands(ROOT / "docs/operate" / page) if each.startswith(begin)
    ]
