r"""Families of formulas, vectors, functions by cases, systems and planes."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from random import Random

from answer_forms import Family, Pair, dressed, fraction_tex, some_numbers

LEFT, RIGHT = r"\left", r"\right"


def repeating(rng: Random, same: bool) -> Pair:
    digits, start = rng.choice(["3", "6", "142857", "09", "27"]), rng.choice(["", "1", "25"])
    value = Fraction(int(start + digits) - int(start or 0), (10 ** len(digits) - 1) * 10 ** len(start))
    written = start + digits if same else start + digits[:-1] + str((int(digits[-1]) + 1) % 9)
    if not same and rng.random() < 0.5:
        return rf"\frac{{{value.numerator}}}{{{value.denominator}}}", f"0.{start}{digits}"
    head, tail = written[: len(start)], written[len(start) :]
    forms = [rf"0.{head}\overline{{{tail}}}", rf"0.{head}({tail})", rf"0.{head}\bar{{{tail}}}"]
    forms.append(f"0.{head}{tail * 3}..." if len(tail) < 3 else forms[0])
    return rf"\frac{{{value.numerator}}}{{{value.denominator}}}", rng.choice(forms)


def rational_functions(rng: Random, same: bool) -> Pair:
    a, b, c = rng.randint(2, 7), rng.choice([-4, -1, 3, 5]), rng.choice([-3, 2, 6])
    d, e, f = (a, b, c) if same else rng.choice([(a + 1, b, c), (a, -b, c), (a, b, -c), (-a, b, c)])

    def form(a: int, b: int, c: int) -> str:
        return rng.choice(
            [
                rf"\frac{{{a}x {b:+}}}{{x {c:+}}}",
                rf"{a} + \frac{{{b - a * c}}}{{x {c:+}}}",
                f"({a}x{b:+})/(x{c:+})",
                rf"\frac{{{-a}x {-b:+}}}{{{-c}-x}}"
                if c > 0
                else rf"\frac{{{2 * a}x {2 * b:+}}}{{2x {2 * c:+}}}",
                rf"({a}x{b:+})(x{c:+})^{{-1}}",
            ]
        )

    return form(a, b, c), dressed(form(d, e, f), rng)


def trigonometry(rng: Random, same: bool) -> Pair:
    table = [
        (
            [r"\sin 2x", r"2\sin x\cos x", r"2 \sin(x) \cos(x)", r"\sin(2x)"],
            [r"\sin x", r"2\sin x", r"\cos 2x", r"\sin^2 x"],
        ),
        (
            [r"\cos^2 x", r"1-\sin^2 x", r"(\cos x)^2", r"\frac{1+\cos 2x}{2}"],
            [r"\cos x^2", r"\sin^2 x", r"\cos 2x"],
        ),
        ([r"\tan x", r"\frac{\sin x}{\cos x}", r"\tan{x}"], [r"\cot x", r"\arctan x"]),
        (
            [r"\arcsin\frac{1}{3}", r"\sin^{-1}\frac13", r"\sin^{-1}(1/3)", r"\arcsin(1/3)"],
            [r"\csc\frac13", r"\arccos\frac13"],
        ),
        ([r"\sec x", r"\frac{1}{\cos x}", r"(\cos x)^{-1}"], [r"\cos^{-1} x", r"\arccos x", r"\csc x"]),
    ]
    equal, different = rng.choice(table)
    return rng.choice(equal), dressed(rng.choice(equal if same else different), rng)


def vectors(rng: Random, same: bool) -> Pair:
    a, b, c = (rng.randint(-9, 9) for _ in range(3))
    d, e, f = (a, b, c) if same else rng.choice([(a + 1, b, c), (a, b, -c - 1), (a, b + 2, c)])

    def form(a: int, b: int, c: int) -> str:
        return rng.choice(
            [
                rf"\langle {a}, {b}, {c} \rangle",
                rf"\begin{{pmatrix}} {a} \\ {b} \\ {c} \end{{pmatrix}}",
                rf"\begin{{bmatrix}} {a}\\{b}\\{c} \end{{bmatrix}}",
                rf"\left\langle {a}, {b}, {c} \right\rangle",
                rf"\vec{{v}} = \langle {a}, {b}, {c} \rangle",
            ]
        )

    return form(a, b, c), form(d, e, f)


def piecewise(rng: Random, same: bool) -> Pair:
    a, b, at = rng.randint(1, 9), rng.randint(1, 9), rng.randint(-3, 6)
    c, d, e = (a, b, at) if same else rng.choice([(b + 1, a, at), (a, b + 1, at), (a, b, at + 1)])

    def form(a: int, b: int, at: int) -> str:
        rows = [(f"{a}x", rf"x \ge {at}", rf"x \geq {at}"), (f"x^2 + {b}", f"x < {at}", f"{at} > x")]
        rows = rows if rng.random() < 0.5 else rows[::-1]
        word = rng.choice(["", r"\text{if } ", r"\text{for } "])
        comma = rng.choice(["", ","])
        body = r" \\ ".join(f"{value}{comma} & {word}{rng.choice(when)}" for value, *when in rows)
        return rng.choice([r"f(x) = \begin{cases} %s \end{cases}", r"\begin{cases} %s \end{cases}"]) % body

    return form(a, b, at), form(c, d, e)


def systems(rng: Random, same: bool) -> Pair:
    x, y = some_numbers(rng, 2)
    u, v = (x, y) if same else rng.choice([(y, x), (x + 1, y), (x, y + 50)])
    p, q = fraction_tex(u, rng), fraction_tex(v, rng)
    form = rng.choice(
        [
            rf"\begin{{cases}} x = {p} \\ y = {q} \end{{cases}}",
            rf"x = {p}, \quad y = {q}",
            rf"x = {p} \text{{ and }} y = {q}",
            rf"(x, y) = {LEFT}({p}, {q}{RIGHT})",
            rf"y = {q},\ x = {p}",
            rf"\{{({p}, {q})\}}",
        ]
    )
    return f"({fraction_tex(x, rng)}, {fraction_tex(y, rng)})", form


def exponentials(rng: Random, same: bool) -> Pair:
    a, b = rng.randint(2, 9), rng.randint(2, 6)
    table = [
        (
            [rf"{a}e^{{-{b}t}}", rf"\frac{{{a}}}{{e^{{{b}t}}}}", rf"{a}\exp(-{b}t)"],
            [rf"{a}e^{{{b}t}}", rf"{a + 1}e^{{-{b}t}}", rf"{a}e^{{-{b}}}t"],
        ),
        (
            [rf"{a}^{{n+{b}}}", rf"{a}^{b}\cdot {a}^n", rf"{a**b} \cdot {a}^n"],
            [rf"{a}^n + {b}", rf"{a}^{{n-{b}}}", rf"{a}^{{{b}n}}"],
        ),
        (
            [rf"\ln {a * b}", rf"\ln {a} + \ln {b}", rf"\ln({a}\cdot {b})"],
            [rf"\ln {a} \cdot \ln {b + 1}", rf"\ln {a * b + 1}", rf"\log_{{10}} {a * b}"],
        ),
        (
            [rf"x^{{\frac{{1}}{{{b}}}}}", rf"\sqrt[{b}]{{x}}", rf"x^{{1/{b}}}"],
            [rf"x^{b}", rf"\frac{{\sqrt{{x}}}}{{{b}}}", rf"\sqrt[{b + 1}]{{x}}"],
        ),
    ]
    equal, different = rng.choice(table)
    return rng.choice(equal), dressed(rng.choice(equal if same else different), rng)


def planes(rng: Random, same: bool) -> Pair:
    a, b, c, d = (rng.choice([-3, -2, 1, 2, 4]) for _ in range(4))
    e, f = (c, d) if same else rng.choice([(c + 5, d), (c, d + 7)])
    k = rng.choice([1, 2, -1, 3])
    forms = [
        f"{k * a}x {k * b:+}y {k * e:+}z {k * f:+} = 0",
        f"{a}x {b:+}y {e:+}z = {-f}",
        rf"z = \frac{{{-f} {-a:+}x {-b:+}y}}{{{e}}}",
        f"{-f} = {e}z {b:+}y {a:+}x",
    ]
    return f"{a}x {b:+}y {c:+}z {d:+} = 0", dressed(rng.choice(forms), rng)


MIXED: Mapping[str, Family] = {
    "repeating decimals": repeating,
    "rational functions": rational_functions,
    "trigonometry": trigonometry,
    "vectors": vectors,
    "cases": piecewise,
    "systems": systems,
    "exponentials": exponentials,
    "planes": planes,
}
