r"""Write the dialects of TeX in one: what changes the look alone is left out, what has two names gets one.

Fonts, sizes, colours, spaces and phantoms change the look; their arguments stay. ``{1 \over 2}``,
``\frac12``, ``\choose`` and ``\root 3 \of x`` are other spellings of commands with arguments in braces,
and a group in braces that is nobody's argument is what stands in it. A command that is not known here
stays as it is: to strike a formula out (``\cancel``) or to negate it (``\not``) is no matter of looks.
One pass over the tokens, linear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

MAX_DEPTH = 24
"""Of braces in each other; deeper text stays as it is."""

_TOKEN = re.compile(r"\\[A-Za-z]+\*?|\\.|.", re.DOTALL)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FONTS = _names(
    "mathbf mathit mathsf mathtt mathnormal boldsymbol bm pmb bold ensuremath underline fbox framebox "
    "mathstrut uline hbox mbox text textbf textit textrm textsf texttt textnormal textup textmd "
    "textsc textsl emph mathrm operatorname mathop mathord mathbin mathrel"
)
"""Commands of one argument that stays."""
_WORDS = _names(
    "hbox mbox text textbf textit textrm textsf texttt textnormal textup textmd textsc textsl emph mathrm "
    "operatorname"
)
"""Those that hold words: blanks part them from what stands around."""
_SWITCHES = _names(
    "displaystyle textstyle scriptstyle scriptscriptstyle limits nolimits bf it rm sf tt bfseries "
    "itshape rmfamily sffamily ttfamily upshape mdseries normalfont normalsize large Large LARGE huge "
    "Huge small footnotesize scriptsize tiny strut null relax allowbreak nobreak nonumber notag "
    "noindent centering protect mathstrut"
)
_BLANKS = _names("quad qquad enspace thinspace medspace thickspace negthinspace space hfill")
_DROPPED = _names("hspace vspace phantom hphantom vphantom label tag color hypertarget")
"""Commands that go with their argument."""
_LOOKS = _SWITCHES | {"color"}
_OVER = frozenset(("hat", "vec", "widehat"))
"""Over i, j and k they name unit vectors, as bold type does."""
_SECOND = {"textcolor": 1, "colorbox": 1, "fcolorbox": 2, "href": 1}
"""Commands whose last argument stays, and how many go before it."""
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
_SAME = {name: same for name, _, same in (pair.partition("=") for pair in _SPELLINGS.split())}
_PLAIN_MATRICES = {"matrix": "matrix", "pmatrix": "pmatrix", "bmatrix": "bmatrix", "cases": "cases"}
_ARGUMENTS = {"frac": 2, "binom": 2, "sqrt": 1, "mathbb": 1, "overline": 1, "vec": 1, "hat": 1}
_COMMAS, _BRACKETS = frozenset(",;"), frozenset(("(", "[", "]", r"\left"))
_SIGNS = frozenset(("=", "<", ">", r"\le", r"\ge", r"\leq", r"\geq"))
_NOT_ALONE = frozenset(",;+-=<>|&")
_INFIX = {"over": r"\frac", "choose": r"\binom"}
_CONSTANTS = re.compile(
    r"\\(?:pi|alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|rho|sigma"
    r"|tau|phi|chi|psi"
    r"|omega|Delta|Gamma|Omega|Theta|Lambda|Sigma|Phi|Psi|var[a-z]+|infty|ell|emptyset|cdot|times|div|pm|mp"
    r"|sin|cos|tan|cot|sec|csc|arc[a-z]+|ln|log|exp|le|ge|neq|lt|gt|approx|in|notin|cup|cap"
    r"|setminus|to|quad|qquad"
    r"|equiv|sim|circ|mid|land|lor|wedge|vee|Rightarrow|ldots|angle|triangle|max|min|gcd|lcm|deg"
    r"|bmod|left|right)"
)


def plain_tex(text: str) -> str:
    r"""Return a formula in the dialect that ``notation`` reads.

    >>> [plain_tex(text) for text in (r"{1\over 2}", r"\frac12", r"\textcolor{red}{\bf 5}")]
    ['\\frac{1}{2}', '\\frac{1}{2}', '5']
    >>> [plain_tex(text) for text in (r"{n \choose 2}", r"\root 3 \of {x}", r"\cancel{5}", "{1,2}")]
    ['\\binom{n}{2}', '\\sqrt[3]{x}', '\\cancel{5}', '{1,2}']
    """
    if not any(sign in text for sign in "\\{~") or _depth(text) > MAX_DEPTH:
        return text
    return _Pass(_TOKEN.findall(text)).result()


def _depth(text: str) -> int:
    return max(accumulate((sign == "{") - (sign == "}") for sign in text))


class _Pass:
    """One pass over the tokens of a text; ``closing`` says where each brace closes."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = list(tokens)
        self.closing, self.opening, self.infix = _structure(self.tokens)
        self.arguments: set[int] = set()

    def result(self) -> str:
        at, out = 0, []
        if -1 in self.infix:
            out.append(_INFIX[self.tokens[self.infix[-1]][1:]] + "{")
        while at < len(self.tokens):
            at = self.step(at, out)
        return "".join(out) + ("}" if -1 in self.infix else "")

    def step(self, at: int, out: list[str]) -> int:
        """Write what the token at an index becomes; return the index of the next one to read."""
        token = self.tokens[at]
        if len(token) > 1 and token[1].isalpha():
            return self.command(at, token[1:].rstrip("*"), out)
        if token == "{" and at in self.closing:
            out.append(self.open(at))
        elif token == "}" and at in self.opening:
            out.append(self.close(self.opening[at]))
        else:
            if token in "^_" and self.is_group(at + 1):
                self.arguments.add(self.after_blanks(at + 1))
            out.append(" " if token in (r"\,", r"\;", r"\:", r"\>", r"\!", "~") and token != r"\!" else token)
        return at + 1

    def command(self, at: int, name: str, out: list[str]) -> int:
        after = at + 1
        if name in _INFIX and at in self.infix.values():
            _strip(out)
            out.append("}{")
            return self.after_blanks(after)
        if name == "root" and (of := self.index_of_root(after)) is not None:
            degree = "".join(self.tokens[after:of]).strip(" {}")
            out.append(rf"\sqrt[{degree}]")
            return self.argument(self.after_blanks(of + 1), out)
        if name in _DROPPED:
            return self.behind(after) if self.is_group(after) else after
        if name in _SECOND:
            return self.last_argument(after, _SECOND[name], out)
        if name in _OVER and self.is_group(after) and self.is_unit_vector(after):
            name = "mathbf"
        if name in _FONTS and self.is_group(after):
            return self.font(name, after, out)
        if name in _SWITCHES or name in _BLANKS:
            out.append(" " if name in _BLANKS else "")
            return self.after_blanks(after) if name in _SWITCHES else after
        if name in _PLAIN_MATRICES and self.is_group(after):
            return self.matrix(name, after, out)
        return self.other(at, name, out)

    def other(self, at: int, name: str, out: list[str]) -> int:
        """Write a command that stays, in its one spelling, its arguments in braces."""
        same = _SAME.get(name, self.tokens[at])
        out.append(same + (" " if same[-1:].isalpha() and self.is_letter(at + 1) else ""))
        name, at = same[1:], at + 1
        if name == "sqrt" and self.is_degree(at):
            end = self.tokens.index("]", at)
            out += self.tokens[self.after_blanks(at) : end + 1]
            at = end + 1
        if name in _ARGUMENTS:
            for _ in range(_ARGUMENTS[name]):
                at = self.argument(self.after_blanks(at), out)
        elif self.is_group(at) and not _CONSTANTS.fullmatch(same):
            self.arguments.add(self.after_blanks(at))
            if name == "begin" and self.is_array(at) and self.is_group(after := self.behind(at)):
                self.arguments.add(self.after_blanks(after))  # the columns of an array
        return at

    def argument(self, at: int, out: list[str]) -> int:
        """Write one argument of a command in braces: a group, or the one token that stands for it."""
        if at >= len(self.tokens):
            return at
        token = self.tokens[at]
        if token == "{" and at in self.closing:
            self.arguments.add(at)
            end = self.closing[at] + 1
            while at < end:
                at = self.step(at, out)
            return end
        if token.isalnum() or _CONSTANTS.fullmatch(token):
            out.append(f"{{{token}}}")
            return at + 1
        return at

    def font(self, name: str, at: int, out: list[str]) -> int:
        at = self.after_blanks(at)
        inside: list[str] = []
        end, k = self.closing[at], at + 1
        while k < end:
            k = self.step(k, inside)
        text = "".join(inside)
        if at in self.infix:
            text = f"{_INFIX[self.tokens[self.infix[at]][1:]]}{{{text}}}"
        before = "".join(out[-2:]).rstrip()[-1:]
        if before in ("^", "_") and before:
            out.append(f"{{{text}}}")
        else:
            out.append(f" {text} " if name in _WORDS else text)
        return end + 1

    def last_argument(self, at: int, dropped: int, out: list[str]) -> int:
        for _ in range(dropped):
            at = self.behind(at) if self.is_group(at) else at
        return self.font("textcolor", at, out) if self.is_group(at) else at

    def matrix(self, name: str, at: int, out: list[str]) -> int:
        at, inside = self.after_blanks(at), []
        end, k = self.closing[at], at + 1
        while k < end:
            k = self.step(k, inside)
        body = "".join(inside).strip().removesuffix("\\\\")
        out.append(rf"\begin{{{_PLAIN_MATRICES[name]}}}{body}\end{{{_PLAIN_MATRICES[name]}}}")
        return end + 1

    def open(self, at: int) -> str:
        """Return what an opening brace becomes: nothing where the group is nobody's argument."""
        frac = _INFIX[self.tokens[self.infix[at]][1:]] + "{" if at in self.infix else ""
        if not self.is_bare(at):
            return "{" + frac
        return (" " if self.tokens[at - 1][1:2].isalpha() else "") + frac  # \\tan{x} is not \\tanx

    def close(self, at: int) -> str:
        frac = "}" if at in self.infix else ""
        return frac if self.is_bare(at) else frac + "}"

    def is_bare(self, at: int) -> bool:
        if at in self.arguments:
            return False
        if self.tokens[self.after_blanks(at + 1)][1:] in _LOOKS:
            return True
        inside = self.tokens[at + 1 : self.closing[at]]
        whole = not any(map(str.strip, (*self.tokens[:at], *self.tokens[self.closing[at] + 1 :])))
        no_set = not _COMMAS & set(inside) or _SIGNS & set(inside) or _BRACKETS & set(inside[:1])
        if whole and no_set:
            return True
        return at in self.infix or not any(token in _NOT_ALONE for token in inside)

    def is_group(self, at: int) -> bool:
        return self.after_blanks(at) in self.closing

    def is_array(self, at: int) -> bool:
        at = self.after_blanks(at)
        return "".join(self.tokens[at + 1 : self.closing[at]]).startswith("array")

    def is_unit_vector(self, at: int) -> bool:
        at = self.after_blanks(at)
        inside = "".join(self.tokens[at + 1 : self.closing[at]]).strip()
        return inside.removeprefix("\\mathbf").strip(" {}") in ("i", "j", "k", r"\imath", r"\jmath")

    def is_letter(self, at: int) -> bool:
        return at < len(self.tokens) and self.tokens[at].isalpha()

    def is_degree(self, at: int) -> bool:
        at = self.after_blanks(at)
        return at < len(self.tokens) and self.tokens[at] == "[" and "]" in self.tokens[at : at + 12]

    def behind(self, at: int) -> int:
        return self.closing[self.after_blanks(at)] + 1

    def after_blanks(self, at: int) -> int:
        while at < len(self.tokens) and self.tokens[at].isspace():
            at += 1
        return at

    def index_of_root(self, at: int) -> int | None:
        return next((k for k in range(at, min(at + 8, len(self.tokens))) if self.tokens[k] == r"\of"), None)


def _strip(out: list[str]) -> None:
    while out and out[-1].isspace():
        out.pop()


def _structure(tokens: Sequence[str]) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    r"""Return where braces close and open, and the ``\over`` of each group (-1: of the whole)."""
    closing: dict[int, int] = {}
    infix: dict[int, int] = {}
    open_ = [-1]
    for at, token in enumerate(tokens):
        if token == "{":
            open_.append(at)
        elif token == "}" and len(open_) > 1:
            closing[open_.pop()] = at
        elif token[1:] in _INFIX:
            infix.setdefault(open_[-1], at)
    infix = {start: at for start, at in infix.items() if start in closing or start == -1}
    return closing, {end: start for start, end in closing.items()}, infix
