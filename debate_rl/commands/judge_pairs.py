"""``debate eval --pairs RUN``: judge the starred and labeled pairs of a run with any checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

from debate.prompting.shown import rounds_held
from debate_rl.commands.console import plain_console, print_table, with_interval, write_json
from debate_rl.evaluation.asking import policy_of
from debate_rl.evaluation.tasks import Subject
from debate_rl.formatting import counted, json_number
from debate_rl.judge_attack.annotated import AnnotatedPairs, annotated_pairs
from debate_rl.judge_attack.judging import check_judged, judge_pairs
from debate_rl.judge_attack.pairs import PLAIN, Judgment, rates
from debate_rl.judge_attack.persuaders import ORDER
from debate_rl.metrics.intervals import clustered_mean
from transcripts import RunStore

HEADS = ("judge", "right", "right in both orders", "tie or no vote", "gain over the first judge")


def judge_annotated(
    run: str, subjects: Sequence[Subject], weights: str | None, *, seed: int, json: str | None
) -> None:
    """Print how often each judge prefers the right side, and write figures and judgments as JSON."""
    with RunStore.open(run) as store:
        found, faults = annotated_pairs(store), store.annotations().faults
    say = plain_console(stderr=True).print
    for fault in faults:
        say(f"debate: note: {fault}")
    if not found.pairs:
        raise ValueError(
            f"--pairs {run}: no starred or labeled pair has exactly one right side and a third solution; "
            "add pairs with debate inspect RUN star ID or label ID LABEL"
        )
    judged: dict[str, list[Judgment]] = {}
    for subject in subjects:
        check_judged(subject.config.debate)
        if rounds_held(subject.config.debate) < 2:
            raise ValueError(f"{subject.name}: debate.num_rounds = 1: no agent judges")
        usual = "newest" if subject.run is None else "start,newest"
        for path, damage in subject.weights(weights or usual).items():
            if damage is not None:
                raise ValueError(damage)
            with policy_of(subject.config, path) as policy:
                config, opened = subject.config.debate, policy.open()
                judged[subject.label(path)] = judge_pairs(opened, found.pairs, found.problems, config, seed)
    rows = _rows(found, judged)
    gains = len(judged) > 1
    print_table([HEADS[: 4 + gains], *(row[: 4 + gains] for row in rows)], f"pairs of {run}")
    say = plain_console().print
    left = (
        f"; left out: {found.left_out} without exactly one right side, with equal texts or no third solution"
        if found.left_out
        else ""
    )
    say(f"{counted(len(found.pairs), 'pair')} of {counted(len(found.problems), 'problem')}, ", end="")
    say(f"{found.by_hand} decided by a label, the others by gold{left}.")
    if json is not None:
        write_json(json, _plain(found, judged))


def _rows(found: AnnotatedPairs, judged: dict[str, list[Judgment]]) -> list[list[str]]:
    """Return a line of the table for each judge."""
    rows, problems = list[list[str]](), [pair.problem for pair in found.pairs]
    first: list[float] = []
    for name, judgments in judged.items():
        plain = [one for one in judgments if one.attack == PLAIN]
        right = [float(one.preferred == "right") for one in plain]
        both = [(value, id) for id, row in rates(found.pairs, judgments)[ORDER].items() for value in row]
        none = [float(one.preferred in ("tie", "none")) for one in plain]
        twice = clustered_mean([value for value, _ in both], [id for _, id in both])
        shares = (clustered_mean(right, problems), twice, clustered_mean(none, problems))
        less = [now - then for now, then in zip(right, first, strict=True)] if first else []
        gain = with_interval(clustered_mean(less, problems, signed=True), signed=True) if less else ""
        rows.append([name, *map(with_interval, shares), gain])
        first = first or right
    return rows


def _plain(found: AnnotatedPairs, judged: dict[str, list[Judgment]]) -> dict[str, object]:
    """Return the pairs, and for each judge its accuracy with interval and what it preferred, for JSON."""
    problems, judges = [pair.problem for pair in found.pairs], list[dict[str, object]]()
    for name, judgments in judged.items():
        plain = [one for one in judgments if one.attack == PLAIN]
        right = clustered_mean([float(one.preferred == "right") for one in plain], problems)
        bounds = {end: json_number(getattr(right, end)) for end in ("low", "high")}
        said = {
            name: [one.preferred for one in judgments if one.attack == attack]
            for name, attack in (("preferred", PLAIN), ("preferred_swapped", ORDER))
        }
        judges.append({"judge": name, "right": right.value, **bounds, **said})
    pairs = [{"problem": pair.problem, "right": pair.right, "wrong": pair.wrong} for pair in found.pairs]
    return {"pairs": pairs, "by_hand": found.by_hand, "left_out": found.left_out, "judges": judges}
