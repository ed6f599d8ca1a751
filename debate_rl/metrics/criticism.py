"""Metrics of the critique protocol: whom criticism names, whether rightly, what becomes of the solutions, and
the segments of a critique with their weights and rewards.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from msgspec import UNSET

from debate.config import DebateConfig
from debate.prompting.shown import holds_criticism, holds_solutions
from debate.ramps import number
from debate.types import Debate, FailureReason, Turn, TurnId
from debate_rl.metrics.answers import mean_of
from learner.advantages import AdvantageConfig
from rewards import Correct, RewardConfig, Rewards, ballot_box, valid_votes
from rewards.criticism import Criticised, corrected_turns, criticised
from rewards.truth import is_right
from rewards.types import stream_named, value_of

OUTCOMES = ("mended", "broken")


def criticism_metrics(debates: Sequence[Debate], correct: Sequence[Correct]) -> dict[str, float]:
    """Return the figures of the criticism in a batch; nothing where no turn holds any.

    In ``wrong_share``, ``score_drop`` and ``persuasive_share`` a solution counts once for each critic of it.
    ``mended``: wrong solutions that became right, ``broken``: right ones that became wrong; ``_alone``: of
    those that nobody criticised.
    """
    turns = [turn for debate in debates for turn in debate.turns if turn.parsed.criticisms is not UNSET]
    if not turns:
        return {}
    named: list[Criticised] = []
    wrong: list[bool] = []
    better: list[bool] = []
    outcomes: dict[str, list[bool]] = {f"{name}{end}": [] for end in ("", "_alone") for name in OUTCOMES}
    for debate, table in zip(debates, correct, strict=True):
        votes = valid_votes(ballot_box(debate))
        found = criticised(debate, votes)
        corrected = corrected_turns(debate, votes)
        revisions = [t.id for t in debate.turns if holds_criticism(debate.protocol, t.id.round - 1)]
        named += found
        wrong += [not right for one in found if (right := is_right(one.solution, table)) is not None]
        better += [revision in corrected for revision in revisions]
        targets = {one.solution for one in found}
        for revision in revisions:
            solution = TurnId(revision.agent, revision.round - 2)
            before, after = is_right(solution, table), is_right(revision, table)
            if revision.round < debate.protocol.num_rounds and before is not None and after is not None:
                alone = "" if solution in targets else "_alone"
                name, changed = ("broken", not after) if before else ("mended", after)
                outcomes[f"{name}{alone}"].append(changed)
    drops = [drop for one in named if (drop := one.drop) is not None]
    result = (
        _naming(turns)
        | mean_of("criticism/wrong_share", wrong)
        | mean_of("criticism/score_drop", drops)
        | mean_of("criticism/persuasive_share", [drop > 0 for drop in drops])
        | mean_of("criticism/self_corrected_share", better)
    )
    for name, values in outcomes.items():
        result |= mean_of(f"criticism/{name}_share", values)
    return result


def _naming(turns: Sequence[Turn]) -> dict[str, float]:
    """Return how many targets a turn names, how many turns name any, and how many criticisms count."""
    counts = [len(turn.parsed.targets or ()) for turn in turns]
    reasons = [failure.reason for turn in turns for failure in turn.parsed.failures]
    invalid = reasons.count(FailureReason.NOT_A_CRITICISM)
    valid = sum(len(turn.parsed.criticisms or ()) for turn in turns)
    result = mean_of("criticism/targets", counts) | mean_of("criticism/turns_share", map(bool, counts))
    return result | ({"criticism/valid_share": valid / (valid + invalid)} if valid + invalid else {})


class Segment(NamedTuple):
    """Tokens of a phase and one stream that rewards them.

    ``weight``: of the stream's advantage; ``reward``: its mean over the turns that have one, else None.
    """

    name: str
    stream: str
    weight: float
    reward: float | None
    turns: int


def segments(
    debate: Debate, rewards: Rewards, scheme: RewardConfig, advantages: AdvantageConfig
) -> list[Segment]:
    """Return the segments of a critique in the order of the debate, with ramps at their first step."""
    scheme, advantages = scheme.at_step(0), advantages.at_step(0)
    generator, (peer, truth) = number(advantages.lambda_gen), scheme.stream_weights
    solved = [("peer", generator * peer), ("truth", generator * truth)]
    judged = [("judge", number(advantages.lambda_judge))]
    parts = {
        "proposal": solved,
        "criticism": [("persuasion", number(advantages.lambda_critic))],
        "ranking": judged,
        "revision": [*solved, *([("shaping", generator)] if scheme.shapes else [])],
        "verdict": judged,
    }
    found: list[Segment] = []
    for name, streams in parts.items():
        turns = [turn.id for turn in debate.turns if name in _segments_of(debate.protocol, turn.id)]
        for stream, weight in streams:
            given = (value_of(stream_named(rewards, stream), turn) for turn in turns)
            values = [value for value in given if value is not None]
            found.append(Segment(name, stream, weight, fmean(values) if values else None, len(values)))
    return found


def _segments_of(protocol: DebateConfig, turn: TurnId) -> tuple[str, ...]:
    if holds_criticism(protocol, turn.round):
        return "criticism", "ranking"
    if holds_solutions(protocol, turn.round):
        return ("revision" if turn.round else "proposal",)
    return ("verdict",)
