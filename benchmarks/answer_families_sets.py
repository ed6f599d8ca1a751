"""Families of sets of reals, relations, and what is stated and then evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from random import Random

from answer_forms import Family, Pair, dressed, fraction_tex, near, some_fraction, some_numbers

# Sets of reals


def region_forms(low: str, high: str, closed: tuple[bool, bool], letter: str) -> list[str]:
    """Return an interval in its notations."""
    left, right = ("[" if closed[0] else "("), ("]" if closed[1] else ")")
    outer = ("[" if closed[0] else "]"), ("]" if closed[1] else "[")
    below, above = (r"\le" if closed[0] else "<"), (r"\leq" if closed[1] else "<")
    back = r"\ge" if closed[1] else ">"
    front = r"\geq" if closed[0] else ">"
    return [
        f"{left}{low}, {high}{right}",
        f"{left}{low},{high}{right}",
        f"{outer[0]}{low}, {high}{outer[1]}",
        rf"{letter} \in {left}{low}, {high}{right}",
        f"{low} {below} {letter} {above} {high}",
        f"{high} {back} {letter} {front} {low}",
        rf"\{{{letter} \mid {low} {below} {letter} {above} {high}\}}",
        rf"\{{{letter} \in \mathbb{{R}} : {low} {below} {letter} {above} {high}\}}",
        rf"{letter} {front} {low} \text{{ and }} {letter} {above} {high}",
        rf"\left{left}{low}, {high}\right{right}",
    ]


def intervals(rng: Random, same: bool) -> Pair:
    low, high = sorted(some_numbers(rng, 2))
    closed, letter = (rng.random() < 0.5, rng.random() < 0.5), rng.choice("xytm")
    ends = (
        [(low, high, closed)]
        if same
        else [
            (low, high, (not closed[0], closed[1])),
            (low, high + 1, closed),
            (low - 1, high, closed),
            (-high - 50, high, closed),
        ]
    )
    a, b, c = rng.choice(ends)
    gold = rng.choice(region_forms(fraction_tex(low, rng), fraction_tex(high, rng), closed, letter))
    return gold, dressed(rng.choice(region_forms(fraction_tex(a, rng), fraction_tex(b, rng), c, letter)), rng)


def half_lines(rng: Random, same: bool) -> Pair:
    bound, above, closed = some_fraction(rng), rng.random() < 0.5, rng.random() < 0.5
    other = (
        (bound, above, closed)
        if same
        else rng.choice([(-bound, above, closed), (bound, not above, closed), (bound, above, not closed)])
    )

    def form(bound: Fraction, above: bool, closed: bool) -> str:
        b = fraction_tex(bound, rng)
        sign, mirrored = (
            (r"\ge", r"\leq")
            if above and closed
            else (">", "<")
            if above
            else (r"\leqslant", r"\geq")
            if closed
            else ("<", ">")
        )
        infinite = rng.choice([r"\infty", "∞", r"+\infty"])
        span = (
            f"{'[' if closed else '('}{b}, {infinite})"
            if above
            else f"(-{infinite.lstrip('+')}, {b}{']' if closed else ')'}"
        )
        return rng.choice(
            [f"x {sign} {b}", f"{b} {mirrored} x", span, rf"x \in {span}", rf"\{{x \mid x {sign} {b}\}}"]
        )

    return form(bound, above, closed), dressed(form(*other), rng)


def unions(rng: Random, same: bool) -> Pair:
    a, b = sorted(some_numbers(rng, 2))
    other = (a, b) if same else rng.choice([(a, b + 1), (a - 1, b), (-b - 1, b)])
    both = not same and rng.random() < 0.3

    def form(a: Fraction, b: Fraction, word: str) -> str:
        low, high = fraction_tex(a, rng), fraction_tex(b, rng)
        forms = [
            rf"(-\infty, {low}) \cup ({high}, \infty)",
            f"(-∞, {low}) ∪ ({high}, ∞)",
            rf"({high}, +\infty) \cup (-\infty, {low})",
            rf"x < {low} \text{{ or }} x > {high}",
            f"x > {high} or x < {low}",
            rf"\mathbb{{R}} \setminus [{low}, {high}]",
            rf"\{{x \mid x < {low} \text{{ or }} x > {high}\}}",
            rf"]-\infty, {low}[ \cup ]{high}, +\infty[",
        ]
        return rng.choice(forms) if word == "or" else f"x < {low} and x > {high}"

    values = (a, b) if both else other
    return form(a, b, "or"), form(*values, "and" if both else "or")


def points_left_out(rng: Random, same: bool) -> Pair:
    value = Fraction(rng.randint(-9, 9))
    other = value if same else value + rng.choice([1, -1, 3])

    def form(k: Fraction) -> str:
        v = fraction_tex(k, rng)
        return rng.choice(
            [
                rf"x \neq {v}",
                rf"x \ne {v}",
                f"x ≠ {v}",
                rf"(-\infty, {v}) \cup ({v}, \infty)",
                rf"\mathbb{{R}} \setminus \{{{v}\}}",
                rf"\text{{all real numbers except }} {v}",
                rf"\{{x \mid x \neq {v}\}}",
                rf"\{{x \in \mathbb R \mid x \ne {v}\}}",
                rf"x < {v} \text{{ or }} x > {v}",
            ]
        )

    wrong = rf"x = {value}" if not same and rng.random() < 0.3 else form(other)
    return form(value), form(other) if same else wrong


def whole_lines(rng: Random, same: bool) -> Pair:
    reals = [
        r"\mathbb{R}",
        r"(-\infty, \infty)",
        "all real numbers",
        r"\text{all real numbers}",
        "ℝ",
        r"x \in \mathbb{R}",
        r"(-\infty, +\infty)",
        r"\text{all reals}",
    ]
    nothing = [
        r"\emptyset",
        r"\varnothing",
        r"\text{no solution}",
        "no solutions",
        r"\{\}",
        "∅",
        r"\text{the empty set}",
        "no real solutions",
    ]
    right, wrong = rng.sample([reals, nothing], 2)
    return rng.choice(right), dressed(rng.choice(right if same else [*wrong, "0", r"\{0\}"]), rng)


# Relations


def lines(rng: Random, same: bool) -> Pair:
    m, b = rng.choice([-4, -3, -2, 2, 3, 5]), rng.choice([-7, -3, -1, 1, 4, 6])
    n, c = (m, b) if same else rng.choice([(m, b + 1), (-m, b), (m + (1 if m != -1 else 2), b), (m, -b)])

    def form(m: int, b: int) -> str:
        k = rng.choice([2, 3, -1, -2])
        return rng.choice(
            [
                f"y = {m}x {b:+}",
                f"y={b}{m:+}x",
                rf"x = \frac{{y {-b:+}}}{{{m}}}",
                f"{m}x - y {b:+} = 0",
                f"y - {m}x = {b}" if m > 0 else f"y + {-m}x = {b}",
                f"{k * m}x {-k:+}y {k * b:+} = 0",
                f"y {-(m + b):+} = {m}(x - 1)",
                f"0 = {m}x {b:+} - y",
            ]
        )

    return form(m, b), dressed(form(n, c), rng)


def circles(rng: Random, same: bool) -> Pair:
    a, b, r = rng.randint(1, 6), rng.choice([-4, -2, 1, 3]), rng.randint(2, 6)
    other = (a, b, r) if same else rng.choice([(-a, b, r), (a, -b, r), (a, b, r + 1)])

    def form(a: int, b: int, r: int) -> str:
        constant = a * a + b * b - r * r
        rest = f"{constant:+}" if constant else ""
        return rng.choice(
            [
                f"(x {-a:+})^2 + (y {-b:+})^2 = {r * r}",
                f"(y {-b:+})^{{2}} + (x {-a:+})^{{2}} = {r}^2",
                f"x^2 + y^2 {-2 * a:+}x {-2 * b:+}y {rest} = 0",
                f"{r * r} = (x {-a:+})^2 + (y {-b:+})^2",
            ]
        )

    return form(a, b, r), dressed(form(*other), rng)


def regions_of_planes(rng: Random, same: bool) -> Pair:
    a, b, c = rng.randint(1, 6), rng.randint(1, 6), rng.randint(1, 20)
    gold = (a, b, c, "<")
    other = (
        gold
        if same
        else rng.choice([(a, b, c, ">"), (a, b, c + 1, "<"), (a, b, c, r"\le"), (a, b + 1, c, "<")])
    )
    mirrored = {"<": ">", ">": "<", r"\le": r"\ge"}

    def form(a: int, b: int, c: int, sign: str) -> str:
        return rng.choice(
            [
                f"{a}x + {b}y {sign} {c}",
                f"{c} {mirrored[sign]} {b}y + {a}x",
                f"{a}x + {b}y - {c} {sign} 0",
                f"{2 * a}x + {2 * b}y {sign} {2 * c}",
            ]
        )

    return form(*gold), dressed(form(*other), rng)


def joined_relations(rng: Random, same: bool) -> Pair:
    a, b = rng.randint(-9, 9), rng.randint(10, 20)
    word, other = rng.sample([" and ", " or "], 2)
    text = r"\text{%s}" % (word if same else other) if rng.random() < 0.5 else (word if same else other)
    left, right = (f"x = {a}", f"y = {b}") if rng.random() < 0.5 else (f"x > {a}", f"y < {b}")
    items = [left, right] if rng.random() < 0.5 else [right, left]
    return left + word + right, items[0] + text + items[1]


def negated(rng: Random, same: bool) -> Pair:
    a, b, sign = rng.choice("abm"), rng.choice("xyz"), rng.choice(["=", "<", r"\le", r"\in"])
    right = rf"{b} {sign} {a}" if sign != r"\in" else rf"{b} \in \mathbb{{Z}}"
    if same:
        return right, dressed(right, rng)
    no = (
        rng.choice([r"\not" + sign, r"\not " + sign, rf"\neg {sign}"])
        if sign != "="
        else rng.choice([r"\neq", r"\not=", "≠", r"\ne", r"\not ="])
    )
    return right, right.replace(sign, no, 1)


# Stated, then evaluated


def evaluated(rng: Random, same: bool) -> Pair:
    n = rng.randint(2, 9)
    value = n * (n + 1) // 2
    end = value if same else near(rng, value)
    stated = rng.choice(
        [
            rf"\sum_{{k=1}}^{{{n}}} k",
            rf"\lim_{{x \to {n}}} \frac{{x^2+x}}{{2}}",
            rf"\int_0^{{{n}}} \left(x + \frac12\right) dx",
            rf"\det \begin{{pmatrix}} {n} & 0 \\ 0 & \frac{{{n + 1}}}{{2}} \end{{pmatrix}}",
            rf"\begin{{vmatrix}} {n} & 0 \\ 1 & \frac{{{n + 1}}}{{2}} \end{{vmatrix}}",
            rf"\prod_{{k=1}}^{{1}} {value}",
            rf"\binom{{{n + 1}}}{{2}}",
            f"f({n})",
            f"P(X = {n})",
            "|AB|",
            r"\angle ABC",
            "x",
            rf"S_{{{n}}}",
        ]
    )
    return str(value), dressed(rf"{stated} = {end}", rng)


def false_chains(rng: Random, same: bool) -> Pair:
    a, b = rng.randint(2, 30), rng.randint(2, 30)
    if same:
        return str(a + b), rng.choice([rf"x = {a} + {b} = {a + b}", rf"{a} + {b} = {a + b}", rf"{a + b} = x"])
    return str(a + b), rng.choice(
        [
            f"{a + b + 1} = {a + b}",
            f"{a + b} = {a + b + 2}",
            f"x = {a} + {b + 1} = {a + b}",
            f"{a} + {b}",
            rf"\sum_{{k=1}}^{{{a + b}}} 1",
        ]
    )


def bound_operators(rng: Random, same: bool) -> Pair:
    n, k = rng.randint(2, 9), rng.choice("ki")
    gold = rng.choice(
        [
            rf"\sum_{{k=1}}^{{{n}}} k^2",
            rf"\int_0^{{{n}}} f(x) dx",
            rf"\prod_{{k=1}}^{{{n}}} a_k",
            rf"\lim_{{x \to {n}}} g(x)",
        ]
    )
    if same:
        return gold, dressed(gold.replace(r"\to", r"\rightarrow"), rng)
    low = gold.replace("k=1", "k=2").replace("int_0", "int_1").replace(r"\to ", r"\to -")
    return gold, rng.choice(
        [
            low,
            gold.replace(str(n), str(n + 1), 1),
            gold.replace("k^2", f"{k}^3")
            .replace("f(x)", "f'(x)")
            .replace("a_k", "b_k")
            .replace("g(x)", "h(x)"),
        ]
    )


def approximations(rng: Random, same: bool) -> Pair:
    a = rng.randint(2, 20)
    form, value = rng.choice(
        [
            (rf"{a}\pi", a * 3.141592653589793),
            (rf"\sqrt{{{a * a + 1}}}", (a * a + 1) ** 0.5),
            (rf"\frac{{{7 * a + 1}}}{{7}}", a + 1 / 7),
        ]
    )
    text = f"{value:.{rng.randint(2, 5)}f}"
    if same:
        return form, rf"{form} \approx {text}"
    return form, rng.choice([text, rf"\approx {text}", f"about {text}", rf"{form} \approx {value + 1:.3f}"])


SETS: Mapping[str, Family] = {
    "intervals": intervals,
    "half-lines": half_lines,
    "unions": unions,
    "points left out": points_left_out,
    "all and nothing": whole_lines,
}
RELATIONS: Mapping[str, Family] = {
    "lines": lines,
    "circles": circles,
    "half-planes": regions_of_planes,
    "and, or": joined_relations,
    "negations": negated,
    "stated, evaluated": evaluated,
    "chains": false_chains,
    "bound operators": bound_operators,
    "approximations": approximations,
}
