r"""Generated answers by kind: equal and different ones, in the forms in which people and models write them.

A family draws a value, writes the gold answer in one form and the answer in another: of the same value,
or of one that is near it (a sign, a digit, a bound, a bracket, a letter). The value, never the text, says
whether they are equal; for formulas sympy is the referee, and a pair that it cannot settle is drawn
again. ``dressed`` adds the dialects of TeX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import TypeAlias

Pair: TypeAlias = tuple[str, str]
"""A gold answer and an answer, or a reply."""
Family: TypeAlias = Callable[[Random, bool], Pair]


@dataclass(frozen=True, slots=True)
class Case:
    """One generated answer; ``same``: whether it equals the gold answer. ``whole``: it is a reply."""

    family: str
    gold: str
    answer: str
    same: bool
    whole: bool = False


def cases(families: Mapping[str, Family], *, n: int, seed: int, whole: bool = False) -> Iterator[Case]:
    """Yield ``n`` cases of each family, half of them equal, the same ones for a seed."""
    for name, family in families.items():
        rng = Random(f"{seed} {name}")
        for k in range(n):
            gold, answer = family(rng, k % 2 == 0)
            yield Case(name, gold, answer, k % 2 == 0, whole)


def near(rng: Random, value: int) -> int:
    """Return another integer: a sign, a digit or a neighbour away."""
    others = [value + 1, value - 1, -value, value * 10, value + rng.randint(2, 9), int(str(abs(value))[::-1])]
    return rng.choice([other for other in others if other != value])


def near_fraction(rng: Random, value: Fraction) -> Fraction:
    others = [-value, value + 1, Fraction(value.numerator + 1, value.denominator)]
    if value:
        others += [1 / value, Fraction(value.numerator, value.denominator + 1)]
    return rng.choice([other for other in others if other != value])


# How TeX is written


def dressed(tex: str, rng: Random) -> str:
    """Return a formula in some dialect: delimiters, sizes, fonts, colours, spaces, plain TeX."""
    if rng.random() < 0.3:
        tex = tex.replace(r"\frac", rng.choice([r"\dfrac", r"\tfrac", r"\cfrac", r"\displaystyle\frac"]))
    if rng.random() < 0.2 and "(" in tex and r"\left" not in tex and "[" not in tex:
        tex = tex.replace("(", r"\left(").replace(")", r"\right)")
    if rng.random() < 0.15:
        tex = (
            rng.choice([r"\mathbf{%s}", r"{\color{red} %s}", r"\textcolor{blue}{%s}", r"{\bf %s}", r"\,%s\;"])
            % tex
        )
    return (
        rng.choice(["%s", "%s", "$%s$", r"\(%s\)", "$$%s$$", r"\boxed{%s}", " %s ", "%s.", r"$\boxed{%s}$"])
        % tex
    )


def fraction_tex(value: Fraction, rng: Random) -> str:
    """Return a fraction in one of its notations."""
    sign, top, bottom = "-" if value < 0 else "", abs(value.numerator), value.denominator
    if bottom == 1:
        return f"{sign}{top}"
    forms = [rf"{sign}\frac{{{top}}}{{{bottom}}}", f"{sign}{top}/{bottom}", rf"{sign}{{{top}\over {bottom}}}"]
    if top < 10 and bottom < 10:
        forms += [rf"{sign}\frac{top}{bottom}", rf"{sign}\frac {top} {bottom}"]
    if sign:
        forms += [rf"\frac{{-{top}}}{{{bottom}}}", rf"\frac{{{top}}}{{-{bottom}}}"]
    times = rng.randint(2, 5)
    forms.append(rf"{sign}\frac{{{top * times}}}{{{bottom * times}}}")
    if top > bottom:
        forms.append(rf"{sign}{top // bottom}\frac{{{top % bottom}}}{{{bottom}}}")
    if bottom in (2, 4, 5, 8, 10, 20, 25):
        forms += [f"{sign}{float(Fraction(top, bottom))}", f"{sign}{float(Fraction(top, bottom))}0"]
    return rng.choice(forms)


def some_fraction(rng: Random) -> Fraction:
    return Fraction(rng.randint(-30, 40) or 7, rng.choice([2, 3, 4, 5, 7, 8, 9, 11, 12]))


def some_numbers(rng: Random, n: int) -> list[Fraction]:
    values: list[Fraction] = []
    while len(values) < n:
        value = rng.choice([Fraction(rng.randint(-20, 30)), some_fraction(rng)])
        if value not in values:
            values.append(value)
    return values
