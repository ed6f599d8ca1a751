"""The blocks of code of the documents."""

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

HOME = Path(__file__).parents[1]
DOCUMENTS = (HOME / "README.md", *sorted(HOME.glob("docs/*.md")))
_SHELL = re.compile(
    r"(?:#.*\n)?(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?(?:debate|make|pip|python|torchrun|export|echo|vf-eval) "
)
_BLOCK = re.compile(
    r"^```(\w*)\n(.*?)^```$|(?<=\n\n)((?: {4}[^\n]*\n|\n(?= {4}))+)", re.MULTILINE | re.DOTALL
)


class Block(NamedTuple):
    """A fenced or indented block: its page, its first line, what it is written in, and its text."""

    page: Path
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(HOME)}:{self.line}"


def blocks(*pages: Path) -> Iterator[Block]:
    """Yield the blocks of pages, in order."""
    for page in pages:
        text = page.read_text("utf-8")
        for found in _BLOCK.finditer(text):
            language, fenced, indented = found.groups()
            code = fenced if indented is None else re.sub(r"^ {4}", "", indented, flags=re.MULTILINE)
            yield Block(page, text[: found.start()].count("\n") + 1, language or kind_of(code), code)


def kind_of(code: str) -> str:
    """Return the language of a block that does not name it: toml, json, sh, python, or nothing."""
    with suppress(tomllib.TOMLDecodeError):
        if tomllib.loads(code):
            return "toml"
    with suppress(ValueError):
        return "json" if [json.loads(line) for line in code.splitlines()] else ""
    if _SHELL.match(code):
        return "sh"
    with suppress(SyntaxError):
        ast.parse(code)
        return "python"
    return ""


def shell_commands(shell: str) -> Iterator[list[str]]:
    """Yield the words of each command of lines of shell, without comments, variables and redirections."""
    for line in re.sub(r" ?\\\n *", " ", shell).splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in (*lexer, ";"):
            if set(word) <= set("|;&<>"):
                if words:
                    yield words
                words = []
            elif words or not re.match(r"[A-Z_]+=", word):
                words.append(word)


def debate_commands(page: Path) -> Iterator[tuple[list[str], bool]]:
    """Yield the words after ``debate`` of each command of a page, and whether it is in a block."""
    inline = re.findall(r"`(debate [a-z][^`]*)`", page.read_text("utf-8"))
    shell = [(block.text, True) for block in blocks(page) if block.kind == "sh"]
    for text, in_a_block in (*shell, *((" ".join(one.split()), False) for one in inline)):
        for words in shell_commands(text):
            if words[0].removeprefix(".venv/bin/") == "debate":
                yield words[1:], in_a_block
            elif words[0] == "torchrun" and "debate_rl" in words:
                yield words[words.index("debate_rl") + 1 :], in_a_block
