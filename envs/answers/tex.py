r"""Rewrite TeX in one dialect: drop commands that change only the look, and give synonyms one name.

Fonts, sizes, colours, spaces and phantoms change only the look, and the arguments of fonts, sizes and colours
stay. ``{1 \over 2}``, ``\frac12`` and ``\choose`` are rewritten as commands with arguments in braces. The
braces around a group that is not an argument are removed. An unknown command is left unchanged, because
striking a formula out (``\cancel``) or negating it (``\not``) changes the meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TypeAlias

MAX_DEPTH = 24  # of nested braces; more deeply nested text is left unchanged

Node: TypeAlias = "str | list[Node]"  # a token, or a group in braces

_TOKEN = re.compile(r"\\[A-Za-z]+\*?|\\.|.", re.DOTALL)


_WORDS = re.compile(r"\\(?:[hm]box|text(?!color|style|degree)[a-z]*|emph|mathrm|operatorname)")
"""Commands whose one argument holds words; the argument stays, with a blank on either side."""
_FONTS = re.compile(
    r"\\(?:math(?:bf|it|sf|tt|normal|strut|op|ord|bin|rel)|boldsymbol|bm|pmb|bold|ensuremath|underline|uline"
    r"|fbox|framebox)"
)
_SWITCHES = re.compile(
    r"\\(?:(?:display|text|script|scriptscript)style|(?:no)?limits|bf|it|rm|sf|tt|(?:bf|md)series"
    r"|(?:it|up)shape|(?:rm|sf|tt)family|normal(?:font|size)|large|L(?:arge|ARGE)|[hH]uge|small|footnotesize"
    r"|scriptsize|tiny|strut|null|relax|allowbreak|nobreak|nonumber|notag|noindent|centering|protect"
    r"|mathstrut)"
)
_BLANKS = re.compile(r"\\(?:q?quad|enspace|(?:thin|med|thick|negthin)?space|hfill)")
_SPACES = frozenset((r"\,", r"\;", r"\:", r"\>", "~"))
_DROPPED = re.compile(r"\\(?:[hv]space|[hv]?phantom|label|tag|color|hypertarget)")
"""Commands that are dropped together with their argument."""
_SECOND = {r"\textcolor": 1, r"\colorbox": 1, r"\fcolorbox": 2, r"\href": 1}
"""Commands of which only the last argument stays, and the number of arguments dropped before it."""
_SPELLINGS = (
    r"dfrac=\frac tfrac=\frac cfrac=\frac dbinom=\binom tbinom=\binom lvert=| rvert=| vert=| "
    r"leq=\le leqslant=\le leqq=\le geq=\ge geqslant=\ge geqq=\ge backslash=\setminus "
    r"smallsetminus=\setminus R=\mathbb{R} reals=\mathbb{R} Reals=\mathbb{R} ast=* star=* "
    r"dots=\ldots cdots=\ldots dotsc=\ldots dotsb=\ldots ne=\neq lt=< gt=> infin=\infty "
    r"varnothing=\emptyset lbrace=\{ rbrace=\} lbrack=[ rbrack=] lparen=( rparen=) colon=: prime=' "
    r"thickapprox=\approx Z=\mathbb{Z} N=\mathbb{N} Q=\mathbb{Q} C=\mathbb{C} tg=\tan ctg=\cot "
    r"cotg=\cot cosec=\csc imath=i jmath=j arctg=\arctan degree=° textdegree=° cr=\\ Bbb=\mathbb "
    r"rightarrow=\to longrightarrow=\to implies=\Rightarrow"
)
_SAME = {"\\" + name: same for name, _, same in (pair.partition("=") for pair in _SPELLINGS.split())}
_ARGUMENTS = {r"\frac": 2, r"\binom": 2, r"\sqrt": 1, r"\mathbb": 1, r"\overline": 1, r"\vec": 1, r"\hat": 1}
_MATRICES = (r"\matrix", r"\pmatrix", r"\bmatrix", r"\cases")
_INFIX = {r"\over": r"\frac", r"\choose": r"\binom"}
_NOT_ALONE = frozenset(",;+-=<>|&")
_CONSTANTS = re.compile(
    r"\\(?:pi|alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|rho|sigma|tau|phi|chi"
    r"|psi|omega|Delta|Gamma|Omega|Theta|Lambda|Sigma|Phi|Psi|var[a-z]+|infty|ell|emptyset|cdot|times|div|pm"
    r"|mp|sin|cos|tan|cot|sec|csc|arc[a-z]+|ln|log|exp|le|ge|neq|lt|gt|approx|in|notin|cup|cap|setminus|to"
    r"|quad|qquad|equiv|sim|circ|mid|land|lor|wedge|vee|Rightarrow|ldots|angle|triangle|max|min|gcd|lcm|deg"
    r"|bmod|left|right)"
)
"""Commands without an argument."""


def plain_tex(text: str) -> str:
    r"""Return a formula in the TeX dialect that ``notation`` expects.

    >>> [plain_tex(text) for text in (r"{1\over 2}", r"\frac12", r"\textcolor{red}{\bf 5}")]
    ['\\frac{1}{2}', '\\frac{1}{2}', '5']
    >>> [plain_tex(text) for text in (r"{n \choose 2}", r"\cancel{5}", "{1,2}")]
    ['\\binom{n}{2}', '\\cancel{5}', '{1,2}']
    """
    if not any(sign in text for sign in "\\{~"):
        return text
    if max(accumulate((sign == "{") - (sign == "}") for sign in text)) > MAX_DEPTH:
        return text
    nodes = _tree(_TOKEN.findall(text))
    shown = [node for node in nodes if not _is_blank(node)]
    if len(shown) == 1 and isinstance(shown[0], list):
        tokens = list(_flat(shown[0]))  # a list keeps its braces, unless it has a relation or other brackets
        related = {"=", "<", ">", r"\le", r"\ge", r"\leq", r"\geq"} & set(tokens)
        first = next((token for token in tokens if not token.isspace()), "")
        if not {",", ";"} & set(tokens) or related or first in ("(", "[", "]", r"\left"):
            nodes = shown[0]
    return _written(nodes)


def _tree(tokens: Sequence[str]) -> list[Node]:
    """Replace each pair of braces and its contents with a group; leave unpaired braces as tokens."""
    open_: list[list[Node]] = [[]]
    for token in tokens:
        if token == "{":
            open_.append([])
        elif token == "}" and len(open_) > 1:
            group = open_.pop()
            open_[-1].append(group)
        else:
            open_[-1].append(token)
    while len(open_) > 1:
        group = open_.pop()
        open_[-1] += ["{", *group]
    return open_[0]


def _flat(nodes: Sequence[Node]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, str):
            yield node
        else:
            yield from ("{", *_flat(node), "}")


def _is_blank(node: Node) -> bool:
    return isinstance(node, str) and node.isspace()


def _written(nodes: Sequence[Node]) -> str:
    r"""Return the text of a sequence of nodes; ``a \over b`` becomes a fraction."""
    for at, node in enumerate(nodes):
        if isinstance(node, str) and node in _INFIX:
            above, below = (_Sequence(part).written() for part in (nodes[:at], nodes[at + 1 :]))
            return f"{_INFIX[node]}{{{above.rstrip()}}}{{{below.lstrip()}}}"
    return _Sequence(nodes).written()


class _Sequence:
    """Write one sequence of nodes from left to right; ``at`` is the index of the next node."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self.at = 0
        self.out: list[str] = []

    def written(self) -> str:
        while self.at < len(self.nodes):
            node = self.nodes[self.at]
            self.at += 1
            if isinstance(node, list):
                self.out.append(self.bare(node))
            elif len(node) > 1 and node[1].isalpha():
                self.command(node.rstrip("*"))
            elif node in ("^", "_"):
                self.out.append(node)
                if (group := self.group()) is not None:
                    self.out.append(f"{{{_written(group)}}}")
            else:
                self.out.append(" " if node in _SPACES else "" if node == r"\!" else node)
        return "".join(self.out)

    def bare(self, group: list[Node]) -> str:
        r"""Return the text of a group that is not an argument; keep its braces only if they are needed."""
        first = next((node for node in group if not _is_blank(node)), "")
        looks = isinstance(first, str) and bool(_SWITCHES.fullmatch(first) or first == r"\color")
        infix = any(isinstance(node, str) and node in _INFIX for node in group)
        if not (looks or infix or not any(token in _NOT_ALONE for token in _flat(group))):
            return f"{{{_written(group)}}}"
        before = self.nodes[self.at - 2] if self.at > 1 else ""
        apart = isinstance(before, str) and before[1:2].isalpha()  # \tan{x} is not \tanx
        return (" " if apart else "") + _written(group)

    def group(self) -> list[Node] | None:
        """Consume and return the next group, after blanks; None if a token comes next."""
        at = self.at
        while at < len(self.nodes) and _is_blank(self.nodes[at]):
            at += 1
        if at == len(self.nodes) or isinstance(group := self.nodes[at], str):
            return None
        self.at = at + 1
        return group

    def skip_blanks(self) -> None:
        while self.at < len(self.nodes) and _is_blank(self.nodes[self.at]):
            self.at += 1

    def command(self, name: str) -> None:
        if _DROPPED.fullmatch(name):
            self.group()
        elif _BLANKS.fullmatch(name):
            self.out.append(" ")
        elif name in _SECOND:
            groups = [group for _ in range(_SECOND[name] + 1) if (group := self.group()) is not None]
            self.out.append(_written(groups[-1]) if groups else "")
        elif (_WORDS.fullmatch(name) or _FONTS.fullmatch(name)) and (group := self.group()) is not None:
            inside, raised = _written(group), "".join(self.out[-2:]).rstrip()[-1:] in ("^", "_")
            spaced = f" {inside} " if _WORDS.fullmatch(name) else inside
            self.out.append(f"{{{inside}}}" if raised else spaced)
        elif _SWITCHES.fullmatch(name):
            self.skip_blanks()
        elif name in (r"\hat", r"\vec", r"\widehat") and (group := self.group()) is not None:
            inside = _written(group)  # over i, j and k a hat only marks a vector, like bold type
            self.out.append(inside if inside.strip() in ("i", "j", "k") else f"{name}{{{inside}}}")
        elif name in _MATRICES and (group := self.group()) is not None:
            body = _written(group).strip().removesuffix("\\\\")
            self.out.append(rf"\begin{{{name[1:]}}}{body}\end{{{name[1:]}}}")
        else:
            self.other(name)

    def other(self, name: str) -> None:
        """Write a command in its standard spelling, with its arguments in braces."""
        same, node = _SAME.get(name, name), self.nodes[self.at] if self.at < len(self.nodes) else ""
        letter = isinstance(node, str) and node.isalpha()
        self.out.append(same + (" " if same[-1:].isalpha() and letter else ""))
        if same == r"\sqrt":
            ahead = self.nodes[self.at : self.at + 12]
            first = next((node for node in ahead if not _is_blank(node)), "")
            if first == "[" and "]" in ahead:
                end = self.at + ahead.index("]") + 1
                self.out.append("".join(_flat(self.nodes[self.at : end])).strip())
                self.at = end
        if same in _ARGUMENTS:
            for _ in range(_ARGUMENTS[same]):
                self.argument()
        elif not _CONSTANTS.fullmatch(same) and (group := self.group()) is not None:
            self.out.append(f"{{{_written(group)}}}")
            if same == r"\begin" and "".join(_flat(group)).startswith("array"):
                columns = self.group()
                self.out.append(f"{{{_written(columns)}}}" if columns is not None else "")

    def argument(self) -> None:
        """Write one argument of a command in braces: a group, or a single token without braces."""
        if (group := self.group()) is not None:
            self.out.append(f"{{{_written(group)}}}")
            return
        self.skip_blanks()
        node = self.nodes[self.at] if self.at < len(self.nodes) else ""
        if isinstance(node, str) and (node.isalnum() or _CONSTANTS.fullmatch(node)):
            self.out.append(f"{{{node}}}")
            self.at += 1
