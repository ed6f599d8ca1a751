"""Families of formulas: roots, polynomials, closed forms, letters, functions, bases."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Any

from answer_forms import Family, Pair, dressed


@cache
def sympy() -> Any:
    import sympy

    return sympy


def differ(left: str, right: str) -> bool:
    """Whether two formulas (in Python's notation) differ, as sympy finds at points and in symbols."""
    sp = sympy()
    difference = sp.sympify(left) - sp.sympify(right)
    at = {
        symbol: sp.Rational(37 + 5 * k, 23 + k)
        for k, symbol in enumerate(sorted(difference.free_symbols, key=str))
    }
    return abs(sp.N(difference.subs(at), 30)) > 1e-12


def roots(rng: Random, same: bool) -> Pair:
    a, b, k = rng.randint(1, 9), rng.choice([2, 3, 5, 6, 7, 10]), rng.randint(2, 6)
    other = (a, b, k) if same else rng.choice([(a + 1, b, k), (a, b + 1, k), (a, b, k + 1), (-a, b, k)])

    def form(a: int, b: int, k: int) -> str:
        root = rng.choice(
            [
                rf"\sqrt{{{b}}}",
                rf"\sqrt {b}" if b < 10 else rf"\sqrt{{{b}}}",
                rf"{b}^{{1/2}}",
                f"√{b}" if b < 10 else f"sqrt({b})",
            ]
        )
        top = f"{a}{root}" if "^" not in root and abs(a) != 1 else rf"{a} \cdot {root}"
        inner = rf"{'-' if a < 0 else ''}\sqrt{{{a * a * b}}}"
        return rng.choice(
            [
                rf"\frac{{{top}}}{{{k}}}",
                f"{top}/{k}",
                rf"\frac{{{inner}}}{{{k}}}",
                rf"\frac{{{a * b}}}{{{k}\sqrt{{{b}}}}}",
            ]
        )

    return dressed(form(a, b, k), rng), dressed(form(*other), rng)


def polynomials(rng: Random, same: bool) -> Pair:
    letter, (p, q, r) = (
        rng.choice("xyzt"),
        (rng.randint(1, 6), rng.choice([-5, -3, -2, 1, 2, 4, 7]), rng.choice([-4, -1, 3, 5])),
    )
    values = [(p, q, r)] if same else [(p, -q, r), (p, q, r + 1), (p + 1, q, r), (p, q, -r)]
    forms = [
        lambda p, q, r: f"({p}{letter}{q:+})({letter}{r:+})",
        lambda p, q, r: f"({letter}{r:+})({p}{letter}{q:+})",
        lambda p, q, r: (
            f"{p}{letter}^2{p * r + q:+}{letter}{q * r:+}" if p * r + q else f"{p}{letter}^2{q * r:+}"
        ),
        lambda p, q, r: (
            f"{q * r}{p:+}{letter}^{{2}}{p * r + q:+}{letter}" if p * r + q else f"{q * r}{p:+}{letter}^2"
        ),
        lambda p, q, r: rf"{p}\cdot {letter}^2 + ({p * r + q}){letter} {q * r:+}",
    ]
    expanded = [f"{p}*{letter}**2+{p * r + q}*{letter}+{q * r}" for p, q, r in ((p, q, r), *values)]
    other = (
        values[0]
        if same
        else next(v for v, text in zip(values, expanded[1:], strict=True) if differ(expanded[0], text))
    )
    return dressed(rng.choice(forms)(p, q, r), rng), dressed(rng.choice(forms)(*other), rng)


def closed_forms(rng: Random, same: bool) -> Pair:
    a, b = rng.randint(2, 9), rng.randint(2, 9)
    table = [
        (
            (rf"{a}\pi", rf"\pi {a}", rf"\pi\cdot {a}", f"{a}π", rf"{2 * a}\cdot\frac{{\pi}}{{2}}"),
            (rf"{a + 1}\pi", rf"\frac{{{a}}}{{\pi}}", f"{a}", rf"{a}\pi^2"),
        ),
        (
            (rf"\ln {a}", rf"\ln({a})", rf"\ln{{{a}}}", rf"\log_e {a}"),
            (rf"\ln {a + 1}", rf"\log_{{2}} {a}", rf"-\ln {a}", rf"\log_{{10}} {a}"),
        ),
        (
            (rf"\log_{a} {b}", rf"\log_{{{a}}}({b})", rf"\frac{{\ln {b}}}{{\ln {a}}}"),
            (rf"\log_{a + 1} {b}", rf"\log_{{{b + 10}}} {a}", rf"\ln {b}"),
        ),
        (
            (rf"e^{{{a}}}", rf"e^{{{a}}}", rf"\exp({a})", rf"\mathrm{{e}}^{{{a}}}"),
            (rf"e^{{-{a}}}", rf"e^{{{a + 1}}}", rf"{a}e"),
        ),
        (
            (rf"{a}!", rf"{a}!\,", str(_factorial(a))),
            (rf"{a + 1}!", str(_factorial(a) + 1), rf"\frac{{1}}{{{a}!}}"),
        ),
        (
            (
                rf"\binom{{{a + b}}}{{{b}}}",
                rf"{{{a + b} \choose {b}}}",
                rf"\dbinom{{{a + b}}}{{{a}}}",
                rf"\frac{{{a + b}!}}{{{a}!{b}!}}",
            ),
            (rf"\binom{{{a + b}}}{{{b + 1 if a != b + 1 else b + 2}}}", rf"\binom{{{a + b + 1}}}{{{b}}}"),
        ),
        (
            (rf"\arctan {a}", rf"\tan^{{-1}} {a}", rf"\tan^{{-1}}({a})", rf"\operatorname{{arctan}}({a})"),
            (rf"\frac{{1}}{{\tan {a}}}", rf"\cot {a}", rf"\arctan {a + 1}"),
        ),
        (
            (rf"{a}^{{{b}}}", f"{a}^{b}", str(a**b), f"{a}**{b}"),
            (rf"{a}^{{{b + 1}}}", str(a**b + 1), f"{a}^{{-{b}}}"),
        ),
        (
            (rf"{a}+{b}i", rf"{b}i+{a}", rf"{a} + {b}\mathrm{{i}}"),
            (rf"{a}-{b}i", rf"{b + 10}+{a}i", rf"-{a}+{b}i", f"{a}+{b}"),
        ),
        (
            (rf"\sin\frac{{\pi}}{{{a}}}", rf"\sin(\pi/{a})", rf"\sin\left(\frac{{\pi}}{{{a}}}\right)"),
            (rf"\cos(\pi/{a + 4})", rf"\sin\frac{{\pi}}{{{a + 1}}}" if a > 2 else r"\sin\frac{\pi}{7}"),
        ),
    ]
    equal, different = rng.choice(table)
    return dressed(rng.choice(equal), rng), dressed(rng.choice(equal if same else different), rng)


def _factorial(n: int) -> int:
    from math import factorial

    return factorial(n)


def letters(rng: Random, same: bool) -> Pair:
    a, b = rng.sample("bkpqrstv", 2)
    gold = rng.choice(
        [rf"{a}^2 + {b}", rf"\frac{{{a}}}{{{b}}}", rf"{a}_1 + {b}_2", rf"2{a}{b}", rf"\sqrt{{{a}+{b}}}"]
    )
    if same:
        return gold, dressed(rng.choice([gold, f"y = {gold}", gold.replace("+ ", "+")]), rng)
    return gold, dressed(
        rng.choice([gold.replace(a, "u"), gold.replace(b, b.upper()), f"{gold} + 1", f"-({gold})"]), rng
    )


def functions(rng: Random, same: bool) -> Pair:
    f, x = rng.choice("fgh"), rng.choice("xt")
    gold = rng.choice([f"{f}({x})", f"{f}({x}) + 1", rf"{f}^{{-1}}({x})", f"{f}'({x})", f"2{f}({x}+1)"])
    if same:
        return gold, dressed(
            gold.replace(f"({x})", rf"\left({x}\right)") if rng.random() < 0.5 else gold, rng
        )
    wrong = {
        "^": [rf"\frac{{1}}{{{f}({x})}}", f"{f}({x})", f"1/{f}({x})"],
        "'": [f"{f}({x})", f"{f}''({x})"],
        "1": [f"{f}({x}) - 1", f"{f}(1) + {x}"],
    }
    mark = next((mark for mark in ("^", "'", "1") if mark in gold), "")
    return gold, rng.choice(
        wrong.get(mark, [f"{f}({x}+1)", f"{f}(y)", rf"{f}^{{-1}}({x})", f"{f}'({x})", f"u({x})"])
    )


def bases(rng: Random, same: bool) -> Pair:
    base = rng.choice([2, 3, 5, 7, 8])
    digits = "".join(str(rng.randrange(1 if k == 0 else 0, base)) for k in range(rng.randint(2, 6)))
    other, to = (
        (digits, base)
        if same
        else rng.choice([(digits[::-1] + "1", base), (digits, base + 1), (digits + "0", base)])
    )
    return f"{digits}_{{{base}}}", dressed(rng.choice([f"{other}_{to}", f"{other}_{{{to}}}"]), rng)


FORMULAS: Mapping[str, Family] = {
    "roots": roots,
    "polynomials": polynomials,
    "closed forms": closed_forms,
    "letters": letters,
    "functions": functions,
    "bases": bases,
}
