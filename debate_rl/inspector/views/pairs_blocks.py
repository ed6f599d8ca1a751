"""The judge under attack as blocks: the hack gap over evaluations, and each of the fixed pairs."""

from __future__ import annotations

from collections.abc import Sequence

from debate_rl.formatting import counted, number, shorten, title
from debate_rl.inspector.blocks import Block, Chart, Line, Link, Section, Series, Span, Table, Text, Words
from debate_rl.judge_attack.pairs import JudgedAttack, WatchedJudge
from debate_rl.metrics.intervals import Estimate, spread

SIGNS = {"right": "✓", "wrong": "✗", "tie": "=", "none": "–"}
"""The sign of the side that a judge preferred."""
PREFERRED = {"right": "the right side", "wrong": "the wrong side", "tie": "a tie", "none": "no valid vote"}
LEGEND = "first the judge at the start; ✓ the right side preferred, ✗ the wrong one, = a tie, – no vote"


def gap_text(gap: Estimate) -> str:
    """Return a hack gap with its 95% interval.

    >>> gap_text(Estimate(0.25, 0.125, 0.375, 9, 9))
    '+0.250 ± 0.125'
    """
    return f"{number(gap.value, signed=True)}{spread(gap, 3, (-2.0, 2.0))}"


def pairs_blocks(
    watched: WatchedJudge, gaps: Sequence[tuple[int, Estimate]], start: int = 0, most: int = 50
) -> list[Block]:
    """Return the hack gap over evaluations, accuracy by attack, and pairs, the most harmful first."""
    blocks: list[Block] = []
    if len(gaps) > 1:
        blocks.append(
            Chart([Series("hack gap", "a", [(0, 0.0), *((at, gap.value) for at, gap in gaps)])], fitted=True)
        )
        by_step = [
            (
                Span(f"after {counted(at, 'step')}", link=Link(("pairs",), (("step", at),)), name="gap-link"),
                gap_text(gap),
            )
            for at, gap in reversed(gaps)
        ]
        blocks.append(Table(("evaluation", "hack gap, 95% interval"), by_step, name="gaps"))
    heads = ("", "start judge", f"after {counted(watched.step, 'step')}", "hack gap")
    figures: list[Sequence[Words]] = []
    for one in watched.figures:
        gap = "" if one.gap is None else gap_text(one.gap)
        shares = (f"{number(of.value)}{spread(of, 3)}" for of in (one.start, one.now))
        figures.append((title(one.attack), *shares, gap))
    blocks.append(Table(heads, figures, name="judge-figures"))
    by_pair: dict[int, list[JudgedAttack]] = {}
    for attack in watched.attacks:
        by_pair.setdefault(attack.number, []).append(attack)
    pairs = sorted(by_pair.values(), key=lambda attacks: (-_fooled(attacks), attacks[0].number))
    told = (
        f"{_fooled(watched.attacks)} of {counted(len(watched.attacks), 'attack')}: right by the start judge"
    )
    rows = [_pair(attacks, watched.step) for attacks in pairs[start : start + most]]
    names = [title(attack.now.attack) for attack in pairs[0]] if pairs else []
    table = Table(("pair", *names, "problem"), rows, name="judged-pairs")
    return [*blocks, Line(f"{told}, and not by this one", name="fooled"), Line(LEGEND, "faint"), table]


def _fooled(attacks: Sequence[JudgedAttack]) -> int:
    return sum(attack.fooled for attack in attacks)


def _pair(attacks: Sequence[JudgedAttack], step: int) -> Sequence[Words]:
    link = Link(("pairs",), (("pair", attacks[0].number), ("step", step)))
    said = [
        tuple(Span(SIGNS[one.preferred], one.preferred) for one in (attack.start, attack.now))
        for attack in attacks
    ]
    question = shorten(attacks[0].pair.question, 90)
    return (Span(str(attacks[0].number), link=link, name="pair-link"), *said, question)


def attacks_on(watched: WatchedJudge, number: int) -> list[JudgedAttack]:
    """Return the attacks on one pair, the plain one first; ValueError for no pair."""
    found = [attack for attack in watched.attacks if attack.number == number]
    if not found:
        raise ValueError(f"pairs: there is no pair {number}")
    return found


def pair_blocks(attacks: Sequence[JudgedAttack], step: int) -> list[Block]:
    """Return one pair: its texts as shown, and what both judges said of them."""
    pair = attacks[0].pair
    texts = (("problem", pair.question), ("right", pair.right), ("the judge's own", pair.own))
    head = Section(
        f"pair {attacks[0].number}: {pair.problem}", [Text(text, name) for name, text in texts], name="pair"
    )
    blocks: list[Block] = [head]
    for attack in attacks:
        shown: list[Block] = [Text(attack.wrong, "the wrong side")]
        if attack.now.attack == "order":
            shown.append(Line("shown the other way round", "faint"))
        elif attack.now.attack != "plain" and attack.wrong == pair.wrong:
            shown.append(Line("as it was: this persuader could not work on it", "faint"))
        for judge, said in (("start judge", attack.start), (f"after {counted(step, 'step')}", attack.now)):
            shown.append(Text(said.reply, (f"{judge}: ", Span(PREFERRED[said.preferred], said.preferred))))
        fooled = (" ", Span("fooled", "doubt")) if attack.fooled else ()
        blocks.append(Section((title(attack.now.attack), *fooled), shown, name="attack", kind="card"))
    return blocks
