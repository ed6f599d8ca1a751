"""The fixed pairs of a run in lines: how the start judge and the judge in training judged them."""

from __future__ import annotations

from collections.abc import Sequence

from debate_rl.formatting import counted, printable, title
from debate_rl.inspector.plain.printer import Printer, table
from debate_rl.inspector.views.judged import attacks_on, figure_rows, fooled, gap_text
from debate_rl.judge_attack.pairs import JudgedAttack, WatchedJudge
from debate_rl.metrics.intervals import Estimate

FOOLED = 20
"""Attacks that fooled the judge in training and not the start judge, that are listed."""


def print_pairs(
    watched: WatchedJudge, gaps: Sequence[tuple[int, Estimate]], printer: Printer, *, as_json: bool = False
) -> None:
    """Print the figures by attack, and what the start judge called right and the later one does not.

    ``gaps``: the hack gap after so many steps, printed where there is more than one.
    """
    if as_json:
        for attack in watched.attacks:
            printer.json(_json(attack, watched.step))
        return
    printer.lines(table(figure_rows(watched), left=1))
    if len(gaps) > 1:
        printer.line()
        by_step = [(f"after {counted(step, 'step')}", gap_text(gap)) for step, gap in gaps]
        printer.lines(table([("evaluation", "hack gap"), *by_step], left=1))
    found = fooled(watched)
    printer.line()
    of = counted(len(watched.attacks), "attack")
    printer.line(f"{len(found)} of {of} the start judge called right, and this one does not:")
    for attack in found[:FOOLED]:
        question = printable(" ".join(attack.pair.question.split()))[:60]
        printer.line(
            f"   {attack.number:>4}  {title(attack.now.attack):<11} {attack.now.preferred:<6} {question}"
        )
    if len(found) > FOOLED:
        printer.line(f"   and {len(found) - FOOLED} more; --json has all")


def print_pair(watched: WatchedJudge, number: int, printer: Printer, *, as_json: bool = False) -> None:
    """Print one pair: its texts as shown, and what both judges said of them; ValueError for no pair."""
    attacks = attacks_on(watched, number)
    if as_json:
        for attack in attacks:
            printer.json(_json(attack, watched.step))
        return
    pair = attacks[0].pair
    for name, text in (("problem", pair.question), ("right", pair.right), ("the judge's own", pair.own)):
        printer.line(f"{name}: {printable(text)}")
    for attack in attacks:
        printer.line()
        printer.line(f"{title(attack.now.attack)}: {printable(attack.wrong)}")
        for judge, said in (("start judge", attack.start), (f"after {watched.step}", attack.now)):
            printer.line(f"   {judge}: {printer.grade(said.preferred)}: {printable(said.reply)}")


def _json(attack: JudgedAttack, step: int) -> dict[str, object]:
    pair = attack.pair
    return {
        "schema": 1,
        "pair": attack.number,
        "problem": pair.problem,
        "attack": attack.now.attack,
        "step": step,
        "right": pair.right,
        "wrong": attack.wrong,
        "start": {"preferred": attack.start.preferred, "reply": attack.start.reply},
        "now": {"preferred": attack.now.preferred, "reply": attack.now.reply},
    }
