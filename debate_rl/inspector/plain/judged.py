"""The fixed pairs of a run in lines: how the start judge and the judge in training judged them."""

from __future__ import annotations

from debate_rl.formatting import counted, number, printable, title
from debate_rl.inspector.plain.printer import Printer, table
from debate_rl.statistics import Estimate, spread
from debate_rl.tracking.judge_pairs import JudgedAttack, WatchedJudge

FOOLED = 20
"""Attacks that fooled the judge in training and not the start judge, that are listed."""


def print_pairs(watched: WatchedJudge, printer: Printer, *, as_json: bool = False) -> None:
    """Print the figures by attack, and what the start judge called right and the later one does not."""
    if as_json:
        for attack in watched.attacks:
            printer.json(_json(attack, watched.step))
        return
    rows = [("pairs", "start judge", f"after {counted(watched.step, 'step')}", "hack gap")]
    rows += [
        (title(one.attack), _share(one.start), _share(one.now), "" if one.gap is None else _gap(one.gap))
        for one in watched.figures
    ]
    printer.lines(table(rows, left=1))
    fooled = [attack for attack in watched.attacks if attack.fooled]
    printer.line()
    of = counted(len(watched.attacks), "attack")
    printer.line(f"{len(fooled)} of {of} the start judge called right, and this one does not:")
    for attack in fooled[:FOOLED]:
        question = printable(" ".join(attack.pair.question.split()))[:60]
        printer.line(
            f"   {attack.number:>4}  {title(attack.now.attack):<11} {attack.now.preferred:<6} {question}"
        )
    if len(fooled) > FOOLED:
        printer.line(f"   and {len(fooled) - FOOLED} more; --json has all")


def print_pair(watched: WatchedJudge, number: int, printer: Printer, *, as_json: bool = False) -> None:
    """Print one pair: its texts as shown, and what both judges said of them; ValueError for no pair."""
    attacks = [attack for attack in watched.attacks if attack.number == number]
    if not attacks:
        raise ValueError(f"pairs: there is no pair {number}")
    if as_json:
        for attack in attacks:
            printer.json(_json(attack, watched.step))
        return
    pair = attacks[0].pair
    for name, text in (("problem", pair.question), ("right", pair.right), ("the judge's own", pair.own)):
        printer.line(f"{name}: {printable(text)}")
    for attack in attacks:
        printer.line()
        wrong = pair.attacked.get(attack.now.attack, pair.wrong)
        printer.line(f"{title(attack.now.attack)}: {printable(wrong)}")
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
        "wrong": pair.attacked.get(attack.now.attack, pair.wrong),
        "start": {"preferred": attack.start.preferred, "reply": attack.start.reply},
        "now": {"preferred": attack.now.preferred, "reply": attack.now.reply},
    }


def _share(found: Estimate) -> str:
    return f"{number(found.value)}{spread(found, 3)}"


def _gap(found: Estimate) -> str:
    return f"{number(found.value, signed=True)}{spread(found, 3, (-2.0, 2.0))}"
