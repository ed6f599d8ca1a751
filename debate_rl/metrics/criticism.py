"""Metrics of the critique protocol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from msgspec import UNSET

from debate.config import DebateConfig
from debate.prompting.shown import holds_criticism, holds_solutions
from debate.ramps import number
from debate.types import Debate, FailureReason, Turn, TurnId
from debate_rl.metrics.features import mean_of
from learner.advantages import AdvantageConfig
from rewards import Correct, RewardConfig, Rewards, ballot_box, valid_votes
from rewards.criticism import Criticised, corrected_turns, criticised
from rewards.truth import is_right
from rewards.types import stream_named, value_of


@dataclass(frozen=True, slots=True)
class Revised:
    """A solution and its revision, right or wrong (None: not graded), and whether anybody criticised it."""

    before: bool | None
    after: bool | None
    named: bool


def criticism_metrics(debates: Sequence[Debate], correct: Sequence[Correct]) -> dict[str, float]:
    """Return the figures of the criticism in a batch; nothing where no turn holds any.

    In ``wrong_share``, ``score_drop`` and ``persuasive_share`` a solution counts once for each critic of it.
    """
    turns = [turn for debate in debates for turn in debate.turns if turn.parsed.criticisms is not UNSET]
    if not turns:
        return {}
    named: list[Criticised] = []
    wrong: list[bool] = []
    better: list[bool] = []
    pairs: list[Revised] = []
    for debate, table in zip(debates, correct, strict=True):
        votes = valid_votes(ballot_box(debate))
        found = criticised(debate, votes)
        corrected = corrected_turns(debate, votes)
        named += found
        wrong += [not right for one in found if (right := is_right(one.solution, table)) is not None]
        better += [revision in corrected for revision in _revisions(debate)]
        pairs += _revised(debate, table, {one.solution for one in found})
    return (
        _naming(turns)
        | mean_of("criticism/wrong_share", wrong)
        | _scores(named)
        | mean_of("criticism/self_corrected_share", better)
        | _outcomes(pairs)
    )


def _naming(turns: Sequence[Turn]) -> dict[str, float]:
    """Return how many targets a turn names, how many turns name any, and how many criticisms count."""
    counts = [len(turn.parsed.targets or ()) for turn in turns]
    invalid = sum(
        failure.reason is FailureReason.NOT_A_CRITICISM for turn in turns for failure in turn.parsed.failures
    )
    valid = sum(len(turn.parsed.criticisms or ()) for turn in turns)
    result = mean_of("criticism/targets", counts) | mean_of("criticism/turns_share", map(bool, counts))
    return result | ({"criticism/valid_share": valid / (valid + invalid)} if valid + invalid else {})


def _scores(named: Sequence[Criticised]) -> dict[str, float]:
    """Return how far the scores of those criticised fell, and how often they did."""
    drops = [drop for one in named if (drop := one.drop) is not None]
    persuasive = [drop > 0 for drop in drops]
    return mean_of("criticism/score_drop", drops) | mean_of("criticism/persuasive_share", persuasive)


def _revisions(debate: Debate) -> list[TurnId]:
    return [turn.id for turn in debate.turns if holds_criticism(debate.protocol, turn.id.round - 1)]


def _revised(debate: Debate, correct: Correct, named: set[TurnId]) -> Iterator[Revised]:
    for revision in _revisions(debate):
        if revision.round < debate.protocol.num_rounds:
            solution = TurnId(revision.agent, revision.round - 2)
            yield Revised(is_right(solution, correct), is_right(revision, correct), solution in named)


def _outcomes(pairs: Sequence[Revised]) -> dict[str, float]:
    """Return the shares of wrong solutions that were mended and of right ones that were broken.

    ``_alone``: of those that nobody criticised.
    """
    result: dict[str, float] = {}
    graded = [pair for pair in pairs if pair.before is not None and pair.after is not None]
    for named, name in ((True, ""), (False, "_alone")):
        of = [pair for pair in graded if pair.named is named]
        result |= mean_of(f"criticism/mended{name}_share", (bool(p.after) for p in of if not p.before))
        result |= mean_of(f"criticism/broken{name}_share", (not p.after for p in of if p.before))
    return result


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
    parts = {
        "proposal": solved,
        "criticism": [("persuasion", number(advantages.lambda_critic))],
        "ranking": [("judge", number(advantages.lambda_judge))],
        "revision": [*solved, *([("shaping", generator)] if scheme.shapes else [])],
        "verdict": [("judge", number(advantages.lambda_judge))],
    }
    return [
        _segment(debate, rewards, name, stream, weight)
        for name, streams in parts.items()
        for stream, weight in streams
    ]


def _segment(debate: Debate, rewards: Rewards, name: str, stream: str, weight: float) -> Segment:
    values = [
        value
        for turn in debate.turns
        if name in _segments_of(debate.protocol, turn.id)
        and (value := value_of(stream_named(rewards, stream), turn.id)) is not None
    ]
    return Segment(name, stream, weight, fmean(values) if values else None, len(values))


def _segments_of(protocol: DebateConfig, turn: TurnId) -> Iterator[str]:
    """Yield the segments that a turn of a round has."""
    if holds_criticism(protocol, turn.round):
        yield from ("criticism", "ranking")
    elif holds_solutions(protocol, turn.round):
        yield "revision" if turn.round else "proposal"
    else:
        yield "verdict"
