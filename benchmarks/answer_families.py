"""Families of numbers, lists, tuples and matrices (``answer_forms`` says what a family is)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from random import Random

from answer_forms import Family, Pair, dressed, fraction_tex, near, near_fraction, some_fraction, some_numbers

WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
)
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"


# Numbers


def integers(rng: Random, same: bool) -> Pair:
    value = rng.randint(-200_000, 2_000_000) if rng.random() < 0.5 else rng.randint(-99, 999)

    def form(k: int) -> str:
        sign, size = "-" if k < 0 else "", abs(k)
        forms = [
            f"{k}",
            f"{k}.0",
            f"{sign}{size:,}",
            f"{sign}{size:,}".replace(",", "{,}"),
            f"+{k}" if k > 0 else f"{k}",
        ]
        forms += [f"{sign}{size:,}".replace(",", r"\,"), f"{k}".replace("-", "−"), f"x = {k}", f"{k}."]
        return dressed(rng.choice(forms), rng)

    return dressed(f"{value}", rng), form(value if same else near(rng, value))


def fractions(rng: Random, same: bool) -> Pair:
    value = some_fraction(rng)
    other = value if same else near_fraction(rng, value)
    return dressed(fraction_tex(value, rng), rng), dressed(fraction_tex(other, rng), rng)


def decimals(rng: Random, same: bool) -> Pair:
    value = Fraction(rng.randint(-99_999, 99_999) or 3, 10 ** rng.randint(1, 4))
    other = value if same else rng.choice([-value, value * 10, value + Fraction(1, 10_000), value / 10])

    def form(k: Fraction) -> str:
        text = f"{float(k):.5f}".rstrip("0")
        forms = [
            text,
            text + "0",
            fraction_tex(k, rng),
            text.replace("-0.", "-.").replace("-", "− ").replace("− ", "−"),
        ]
        return rng.choice(forms)

    return f"{float(value):.5f}".rstrip("0"), dressed(form(other), rng)


def scientific(rng: Random, same: bool) -> Pair:
    digits, power = (
        rng.choice([f"{rng.randint(10, 99) / 10}", f"{rng.randint(1, 9)}", "6.02"]),
        rng.choice([-5, -3, 3, 4, 6, 9, 23]),
    )
    other, to = (
        (digits, power) if same else rng.choice([(digits, power + 1), (digits, -power), ("7.77", power)])
    )

    def form(d: str, p: int) -> str:
        forms = [
            rf"{d} \times 10^{{{p}}}",
            rf"{d} \cdot 10^{{{p}}}",
            f"{d}e{p}",
            f"{d}×10^{p}",
            f"{d}*10^{p}",
            f"{d}E{p}",
        ]
        exact = Fraction(d) * Fraction(10) ** p
        if exact.denominator == 1 and exact < 10**12:
            forms.append(f"{int(exact):,}")
        return dressed(rng.choice(forms), rng)

    return form(digits, power), form(other, to)


def in_words(value: int) -> str:
    small, tens = WORDS.split(), TENS.split()
    if value < 0:
        return "negative " + in_words(-value)
    if value <= 20:
        return small[value]
    if value < 100:
        return tens[value // 10 - 2] + (f"-{small[value % 10]}" if value % 10 else "")
    if value < 1000:
        return f"{small[value // 100]} hundred" + (f" and {in_words(value % 100)}" if value % 100 else "")
    return f"{in_words(value // 1000)} thousand" + (f" {in_words(value % 1000)}" if value % 1000 else "")


def number_words(rng: Random, same: bool) -> Pair:
    value = rng.choice([rng.randint(-20, 99), rng.randint(100, 99_999)])
    other = value if same else near(rng, value)
    text = in_words(other) if other >= -99_999 and abs(other) < 1_000_000 else str(other)
    text = rng.choice([text, text.capitalize(), rf"\text{{{text}}}", text.replace("negative", "minus")])
    return str(value), text


def percents(rng: Random, same: bool) -> Pair:
    value = rng.randint(1, 400)
    other = value if same else rng.choice([value + 1, Fraction(value, 100), value * 100, -value])
    text = str(other) if isinstance(other, int) else f"{float(other)}"
    return rng.choice([rf"{value}\%", f"{value}%", f"{value}"]), dressed(
        text + rng.choice([r"\%", "%", r" \%"]), rng
    )


MEASURES = (
    (("cm", "centimeters", r"\text{ cm}", r"\mathrm{~cm}"), ("m", "meters", r"\text{ m}")),
    (("kg", "kilograms", r"\text{ kg}"), ("g", "grams", r"\text{ g}")),
    (("hours", "hr", r"\text{ hours}"), ("minutes", "min", r"\text{ minutes}")),
    (("miles", r"\text{ miles}"), ("feet", "ft", r"\text{ feet}")),
    (
        ("cm^2", "square centimeters", r"\text{ cm}^2", r"\text{ cm}^{2}", r"\mathrm{cm}^2", "cm²"),
        ("cm^3", r"\text{ cm}^3"),
    ),
    (
        ("m/s", "meters per second", r"\text{ m/s}", r"\mathrm{~m}/\mathrm{s}"),
        ("m/s^2", r"\mathrm{~m}/\mathrm{s}^2"),
    ),
)


def units(rng: Random, same: bool) -> Pair:
    value, (right, wrong) = some_fraction(rng), rng.choice(MEASURES)
    other = value if same or rng.random() < 0.5 else near_fraction(rng, value)
    names = right if same or other != value else wrong
    gold, text = (fraction_tex(v, rng) for v in (value, other))
    blank = rng.choice([" ", "~", r"\ "])
    bare = same and rng.random() < 0.3
    unit = "" if bare else (name if (name := rng.choice(names)).startswith("\\") else blank + name)
    return gold + " " + rng.choice(right), dressed(text + unit, rng) if unit[
        :1
    ] == "\\" else text + unit.replace("~", " ")


def money(rng: Random, same: bool) -> Pair:
    cents = rng.randint(100, 999_999)
    other = cents if same else rng.choice([cents + 1, cents * 100, cents + 100])

    def form(k: int) -> str:
        text, whole = f"{k / 100:,.2f}", f"{k / 100:.2f}"
        return rng.choice(
            [
                rf"\${text}",
                f"${whole}",
                f"{whole} dollars",
                f"USD {whole}",
                f"{text} USD",
                rf"\text{{\${text}}}",
                f"US${whole}",
            ]
        )

    return rng.choice([f"{cents / 100:.2f}", rf"\${cents / 100:.2f}"]), form(other)


def lists(rng: Random, same: bool) -> Pair:
    values = some_numbers(rng, rng.randint(2, 4))
    wrong = rng.choice(
        [[*values[:-1], near_fraction(rng, values[-1])], values[:-1], [*values, values[0] + 50]]
    )

    def form(items: Sequence[Fraction]) -> str:
        items = rng.sample(list(items), len(items))
        texts = [fraction_tex(item, rng) for item in items]
        joined = rng.choice([", ", ",", "; ", r",\, "]).join(texts)
        last = ", ".join(texts[:-1]) + rng.choice([" and ", " or ", r" \text{ and } ", ", and "]) + texts[-1]
        named = ", ".join(f"x = {text}" for text in texts)
        return dressed(
            rng.choice(
                [joined, rf"\{{{joined}\}}", last if texts[1:] else joined, named, rf"x \in \{{{joined}\}}"]
            ),
            rng,
        )

    if not same and set(wrong) == set(values):
        wrong = [*values, values[0] + 51]
    return form(values), form(values if same else wrong)


def tuples(rng: Random, same: bool) -> Pair:
    values = some_numbers(rng, rng.randint(2, 3))
    wrong = rng.choice([values[::-1], [near_fraction(rng, values[0]), *values[1:]], [*values, Fraction(99)]])

    def form(items: Sequence[Fraction]) -> str:
        joined = rng.choice([", ", ","]).join(fraction_tex(item, rng) for item in items)
        names = ",".join("xyzw"[: len(items)])
        assigned = ", ".join(
            f"{name}={fraction_tex(item, rng)}" for name, item in zip("xyzw", items, strict=False)
        )
        return dressed(rng.choice([f"({joined})", f"({joined})", f"({names})=({joined})", assigned]), rng)

    joined = ", ".join(fraction_tex(item, rng) for item in values)
    return f"({joined})", form(values if same else wrong)


def matrices(rng: Random, same: bool) -> Pair:
    rows, columns = rng.choice([(2, 2), (2, 1), (3, 1), (2, 3)])
    cells = [
        [Fraction(rng.randint(-9, 9), rng.choice([1, 1, 2, 3])) for _ in range(columns)] for _ in range(rows)
    ]
    wrong = [list(row) for row in cells]
    wrong[rng.randrange(rows)][rng.randrange(columns)] += 1

    def form(cells: Sequence[Sequence[Fraction]]) -> str:
        body = rng.choice([r" \\ ", r"\\"]).join(
            rng.choice([" & ", "&"]).join(fraction_tex(c, rng) for c in row) for row in cells
        )
        array = rf"\begin{{array}}{{{'c' * columns}}}{body}\end{{array}}"
        forms = [rf"\begin{{{name}}}{body}\end{{{name}}}" for name in ("pmatrix", "bmatrix")]
        forms += [
            rf"\left({array}\right)",
            rf"\left[{array}\right]",
            rf"\left(\begin{{matrix}}{body}\end{{matrix}}\right)",
        ]
        forms += [
            rf"\pmatrix{{{body.replace(chr(92) * 2, chr(92) + 'cr ')}}}",
            rf"\left[\begin{{smallmatrix}}{body}\end{{smallmatrix}}\right]",
        ]
        return rng.choice(["%s", "$%s$", "$$%s$$", r"A = %s", r"\boxed{%s}"]) % rng.choice(forms)

    return form(cells), form(cells if same else wrong)


NUMBERS: Mapping[str, Family] = {
    "integers": integers,
    "fractions": fractions,
    "decimals": decimals,
    "scientific notation": scientific,
    "number words": number_words,
    "percents": percents,
    "units": units,
    "money": money,
}
SHAPES: Mapping[str, Family] = {"lists": lists, "tuples": tuples, "matrices": matrices}
