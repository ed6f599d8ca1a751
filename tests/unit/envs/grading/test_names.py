"""Names before values and names of bound letters: drawn statements of the same and of other things."""

from random import Random

import pytest

from envs import same_answer

N = 60
LETTERS = "ijkmpqt"
CAPITALS = "ABCDEFGH"


def accepted(answer: str, gold: str) -> bool:
    return same_answer(answer, gold).verdict is True


def a_name(rng: Random) -> tuple[str, str, str]:
    """Return a name, how the same thing may be written, and the name of another thing like it."""
    a, b, c, d = rng.sample(CAPITALS, 4)
    k, other = rng.sample(range(2, 40), 2)
    f, g = rng.sample("fghpq", 2)
    return rng.choice(
        [
            (f"{a}{b}", f"{b}{a}", f"{a}{c}"),
            (rf"\angle {a}{b}{c}", rf"\angle {c}{b}{a}", rf"\angle {b}{a}{c}"),
            (rf"\angle {a}{b}{c}", rf"\angle {b}", rf"\angle {a}{b}{d}"),
            (rf"\overline{{{a}{b}}}", rf"\overline{{{b}{a}}}", rf"\overline{{{a}{d}}}"),
            *((f"P({a})", f"P( {a} )", f"P({b})"), (f"P(X={k})", f"P(X = {k})", f"P(X={other})")),
            *((f"{f}({k})", f"{f}({k})", f"{f}({other})"), (f"{f}({k})", f"{f}( {k} )", f"{g}({k})")),
            (f"{f}^{{-1}}({k})", f"{f}^{{-1}}({k})", f"{f}({k})"),
            (rf"\det {a}", rf"\det({a})", rf"\det {b}"),
            (rf"|{a}\cap {b}|", rf"|{b}\cap {a}|", rf"|{a}\cap {c}|"),
        ]
    )


@pytest.mark.parametrize("seed", range(N))
def test_a_value_is_of_the_thing_that_its_name_names(seed: int):
    rng = Random(seed)
    name, same, other = a_name(rng)
    value = rng.randint(3, 99)
    gold = f"{name} = {value}"
    assert accepted(f"{same} = {value}", gold), (same, gold)
    assert accepted(f"{value}", gold), gold
    assert accepted(gold, f"{value}"), gold
    assert not accepted(f"{other} = {value}", gold), (other, gold)
    assert not accepted(f"{name} = {value + 1}", gold)


@pytest.mark.parametrize("seed", range(N))
def test_statements_about_values_of_a_function_that_nobody_defined(seed: int):
    rng = Random(seed)
    f, (a, b), value = rng.choice("fgh"), rng.sample(range(30), 2), rng.randint(-50, 50)
    gold = f"{f}({a}) + {f}({b}) = {value}"
    assert accepted(f"{value} = {f}({b}) + {f}({a})", gold)
    assert not accepted(f"{f}({a}) + {f}({b}) = {value + 1}", gold)
    assert not accepted(f"{f}({a}) + {f}({b + 1}) = {value}", gold)
    assert accepted(f"{f}({b}) = {f}({a})", f"{f}({a}) = {f}({b})")
    assert not accepted(f"{f}({a}) > {value + 1}", f"{f}({a}) > {value}")
    assert not accepted(f"{f}({a}) < {value}", f"{f}({a}) > {value}")
    assert accepted(f"{value} = {f}({a})", f"{f}({a}) = {value}")


@pytest.mark.parametrize("seed", range(N))
def test_functions_and_their_inverses_and_derivatives_are_three_things(seed: int):
    rng = Random(seed)
    f, g = rng.sample("fghpq", 2)
    a, b = rng.randint(2, 9), rng.randint(1, 9)
    body = f"{a}x+{b}"
    for head in (f"{f}(x)", f"{f}^{{-1}}(x)", f"{f}'(x)"):
        assert accepted(f"{head} = {b}+{a}x", f"{head} = {body}")
        assert accepted(body, f"{head} = {body}")
        assert not accepted(f"{head.replace(f, g)} = {body}", f"{head} = {body}")
    heads = (f"{f}(x)", f"{f}^{{-1}}(x)", f"{f}'(x)", rf"\frac{{d{f}}}{{dx}}")
    pairs = [(x, y) for x in heads for y in heads if x != y and {x, y} != set(heads[2:])]
    assert [(x, y) for x, y in pairs if accepted(f"{x} = {body}", f"{y} = {body}")] == []


@pytest.mark.parametrize("seed", range(N))
def test_a_bound_letter_has_no_name(seed: int):
    rng = Random(seed)
    a, b = rng.sample(LETTERS, 2)
    low, power = rng.randint(0, 3), rng.randint(2, 5)
    sign = rng.choice((r"\sum", r"\prod"))

    def term(k: str) -> str:
        return rng.choice((rf"{k}^{{{power}}}x", rf"\frac{{x}}{{{k}+{power}}}", rf"({k}+x)^{{{k}}}"))

    drawn = rng.getstate()
    first = rf"{sign}_{{{a}={low}}}^{{n}} {term(a)}"
    rng.setstate(drawn)
    renamed = rf"{sign}_{{{b}={low}}}^{{n}} {term(b)}"
    assert accepted(renamed, first), (renamed, first)
    assert not accepted(renamed.replace(f"={low}", f"={low + 1}"), first)
    assert not accepted(renamed.replace("^{n}", f"^{{{b}}}"), first.replace("^{n}", f"^{{{a}}}"))
    assert not accepted(f"{renamed} + {b}", f"{first} + {a}")  # a free letter behind the sum
    assert not accepted(f"{b} {renamed}", f"{a} {first}")  # and before it
    rng.setstate(drawn)
    assert not accepted(rf"{sign}_{{{b}={low}}}^{{n}} {term(a)}", first)  # the bound letter does not occur


@pytest.mark.parametrize("seed", range(N))
def test_the_variable_of_a_definite_integral_has_no_name(seed: int):
    rng = Random(seed)
    a, b = rng.sample("xyzstu", 2)
    low, high = sorted(rng.sample(range(1, 9), 2))

    def integral(letter: str, bound: object) -> str:
        return rf"\int_{{{low}}}^{{{bound}}} f({letter})\,d{letter}"

    assert accepted(integral(a, high), integral(b, high))
    assert accepted(integral(a, "w"), integral(b, "w"))
    assert not accepted(integral(a, high), integral(b, high + 1))
    assert not accepted(integral(a, a), integral(b, b))
    assert not accepted(f"{a} {integral(a, high)}", f"{b} {integral(b, high)}")
    assert not accepted(integral(a, high) + f"+{a}", integral(b, high) + f"+{b}")
    assert not accepted(rf"\int f({a})\,d{a}", rf"\int f({b})\,d{b}")  # a function, of another letter


@pytest.mark.parametrize("seed", range(N))
def test_indexed_values_of_a_letter_are_its_values(seed: int):
    rng = Random(seed)
    letter, another = rng.sample("abxyzt", 2)
    first, second = rng.sample([k for k in range(-20, 21) if k], 2)
    join = rng.choice((", ", r" \text{ or } ", r" \text{ and } "))
    gold = rf"{letter} = {first} \text{{ or }} {letter} = {second}"
    assert accepted(f"{letter}_1 = {first}{join}{letter}_2 = {second}", gold)
    assert accepted(f"{letter}_1 = {second}{join}{letter}_2 = {first}", gold)
    assert not accepted(f"{letter}_1 = {first}{join}{letter}_2 = {second + 1}", gold)
    assert not accepted(f"{letter}_1 = {first}{join}{another} = {second}", gold)
    assert not accepted(f"{letter}_1 = {first}", gold)
    indexed = f"{letter}_1 = {first}, {letter}_2 = {second}"
    assert not accepted(f"{letter}_1 = {second}, {letter}_2 = {first}", indexed)


@pytest.mark.parametrize("seed", range(N))
def test_words_of_sign_and_percent_signs(seed: int):
    rng = Random(seed)
    value = rng.choice((rng.randint(1, 999), rng.randint(10, 999) / 10))
    word = rng.choice(("minus", "negative", "Minus", "Negative"))
    assert accepted(f"{word} {value}", f"-{value}")
    assert accepted(rf"\text{{{word} }}{value}", f"-{value}")
    assert not accepted(f"{word} {value}", f"{value}")
    assert not accepted(f"{word} -{value}", f"{value}")
    assert accepted(f"{value}%", f"{value}")
    assert accepted(f"{value}", rf"{value}\%")
    other = rng.choice((rf"\${value}", f"{value} dollars", f"{value} cm", rf"{value}^\circ", f"€{value}"))
    assert not accepted(f"{value}%", other)
    assert not accepted(other, rf"{value}\%")
