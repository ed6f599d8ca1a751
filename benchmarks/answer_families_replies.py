"""Families of whole replies: sentences, boxes, hedges, languages and scripts."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from answer_families import fractions, matrices, tuples
from answer_families_formulas import closed_forms, roots
from answer_families_sets import intervals
from answer_forms import Family, Pair, near

# Whole replies

STATED = (
    "The answer is {}.",
    "So the answer is {}",
    "Answer: {}",
    "**Answer:** {}",
    "The final answer is {}.",
    "Therefore, the answer is **{}**.",
    "#### {}",
    r"Hence \boxed{{{}}}.",
    r"Thus we get $\boxed{{{}}}$ in the end.",
    "The answer is ${}$.",
    r"The answer is \({}\).",
    "The answer is:\n\n{}",
    "Final Answer: {}",
    "答案是{}。",
    "答案：{}",
    "所以答案为 ${}$。",
    "La réponse est {}.",
    "Réponse : {}",
    "Die Antwort ist {}.",
    "Antwort: {}",
    "La respuesta es {}.",
    "Respuesta: ${}$",
    "Ответ: {}",
    "A resposta é {}.",
    "La risposta è {}.",
    "答えは {} です。",
)
NUMERIC = (
    "Final Answer: There are {} ways to do it.",
    "Final Answer: The largest possible value is {}.",
    "The answer is that she has {} apples left.",
    "Final answer: you can choose them in {} different ways.",
    r"Final Answer: The sum of the digits equals ${}$.",
    r"so \boxed {}",
    r"so \boxed {}.",
    "It works out as follows. 3 + 4 = 7. In all she sold {}.",
    "Final Answer: The train leaves after {} minutes.",
)
HEDGED = (
    "The answer is {} or {other}.",
    "The answer is {other} or {}.",
    "The answer is not {}.",
    "The answer is either {} or maybe {other}.",
    r"\boxed{{{} \text{{ or }} {other}}}",
    "The answer is {}. No wait, the answer is {other}.",
    "答案不是{}",
    "答案是{}或{other}。",
    "La réponse n'est pas {}.",
    "La réponse est {} ou {other}.",
    "Die Antwort ist nicht {}.",
    "Die Antwort ist {} oder {other}.",
    "Ответ: {} или {other}",
    "Ответ: не {}",
    "Respuesta: no es {}",
    "Final Answer: half of the {} ways work.",
    "Final Answer: There are {} ways for one and {other} ways for the other.",
    "Final Answer: There are fewer than {} ways.",
    "Final Answer: It is at most {} in all.",
    "I get {other} or perhaps {}",
    r"so $x \neq {}$",
    "First {}, then \\boxed {other}.",
)


def stated_numbers(rng: Random, same: bool) -> Pair:
    value = rng.choice([rng.randint(2, 999), rng.randint(-99, -1)])
    other = value if same else near(rng, value)
    text = rng.choice([f"{other}", f"{other}", f"{other}.0"])
    return str(value), rng.choice((*STATED, *STATED, *NUMERIC)).format(text)


def stated_formulas(rng: Random, same: bool) -> Pair:
    family = rng.choice([fractions, roots, closed_forms, intervals, matrices, tuples])
    gold, answer = family(rng, same)
    for sign in ("$$", "$", r"\(", r"\)", r"\boxed"):
        answer = answer.replace(sign, "")
    answer = answer.strip(" .").removesuffix(r"\;")
    return gold, rng.choice(
        [
            r"We find \boxed{%s}.",
            r"so $\boxed{%s}$",
            "The answer is $%s$.",
            r"Answer: \(%s\)",
            "The answer is:\n\\[\n%s\n\\]",
        ]
    ) % answer


def hedges(rng: Random, same: bool) -> Pair:
    value = rng.randint(2, 999)
    other = near(rng, value)
    if same:
        return f"{value}, {other}", rng.choice(
            [
                "The answer is {} or {other}.",
                "The answers are {} and {other}",
                r"\boxed{{{}, {other}}}",
                "x is \\boxed{{{}}} and y is \\boxed{{{other}}}",
            ]
        ).format(value, other=other)
    return str(value), rng.choice(HEDGED).format(value, other=abs(other) + 1000)


def scripts(rng: Random, same: bool) -> Pair:
    value = rng.randint(2, 9999)
    other = value if same else near(rng, value)
    digits, frame = rng.choice(
        [("０１２３４５６７８９", "答案是{}。"), ("٠١٢٣٤٥٦٧٨٩", "الجواب هو {}"), ("०१२३४५६७८९", "उत्तर है {}")]
    )
    written = "".join(digits[int(d)] if d.isdigit() else d for d in str(abs(other)))
    return str(value), frame.format(written if other >= 0 else written + "0")


REPLIES: Mapping[str, Family] = {
    "stated numbers": stated_numbers,
    "stated formulas": stated_formulas,
    "hedges": hedges,
    "other scripts": scripts,
}
