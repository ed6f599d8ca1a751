"""What the weights that all arms begin with do: p_v, p_c and p_m, and what a debate costs.

Debates are held as training holds them, on training problems, and nothing is learnt. What a control would
make of their votes is counted on the same debates.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from pydantic import Field

from debate import Debate
from debate.seeds import derive_seed
from debate.settings import Settings
from debate_rl.config import Config
from debate_rl.config.recipes import read_facts
from debate_rl.preflight.debates import hold, opened_policy
from debate_rl.preflight.votes import RoundVotes, votes_by_round
from debate_rl.rollouts.controls import controlled
from debate_rl.runs.folder import write_whole
from debate_rl.sampling.load_problems import Problems, load_run_problems
from debate_rl.strategies.work import spent_on
from envs.answers.keys import AnswerKey, key_of
from experiments.frontier.signals import Signal

PROBLEMS = 120


class Judged(Settings):
    """Of the decidable pairs of a round: how many there are, p_v and p_c; and of its problems p_m."""

    pairs: int = Field(ge=0)
    p_v: float = Field(ge=0, le=1)
    p_c: float = Field(ge=0, le=1)
    p_m: float = Field(ge=0, le=1)

    @classmethod
    def of(cls, found: RoundVotes) -> Judged:
        """Return the figures without their intervals."""
        votes, crowd, majority = found.votes, found.crowd, found.majority
        return cls(pairs=votes.n, p_v=votes.value, p_c=crowd.value, p_m=majority.value)


class Start(Settings):
    """What was measured of a start. ``judged[signal][round]``: what votes say under a signal's control.

    ``solution`` and ``debate``: tokens that a solution of round 0 and a whole debate generate, in the mean.
    """

    problems: int = Field(ge=1)
    judged: dict[str, dict[int, Judged]]
    solution: float = Field(gt=0)
    debate: float = Field(gt=0)

    @property
    def solutions(self) -> float:
        """Solutions of round 0 that spend the tokens of a debate."""
        return self.debate / self.solution


def measured_start(
    config: Config, signals: Sequence[Signal], path: Path, *, problems: int = PROBLEMS
) -> Start:
    """Return what the weights do that a run of ``config`` begins with; what stands in ``path`` is read."""
    if path.exists():
        found = read_facts(Start, path, "remove the file, and the start is measured anew")
        if {one.name for one in signals} <= found.judged.keys() and found.problems == problems:
            return found
    data = load_run_problems(config)
    with opened_policy(config, data, None, _silent) as opened:
        held = hold(config, data, opened, problems, _silent)
    found = start_of(config, data, held.rollout.debates, held.rollout.correct, signals, problems)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, found.model_dump_json(indent=1).encode())
    return found


def _silent(_: str) -> None:
    """Take a line of progress, and print nothing."""


def start_of(
    config: Config,
    data: Problems,
    debates: Sequence[Debate],
    correct: Sequence[Any],
    signals: Sequence[Signal],
    problems: int,
) -> Start:
    """Return the figures of debates that were held and graded."""
    key = key_of(data.environment)
    solutions = [turn for debate in debates for turn in debate.turns if turn.id.round == 0]
    return Start(
        problems=problems,
        judged={one.name: _judged(config, debates, correct, one, key) for one in signals},
        solution=fmean(spent_on(turn.completion)[1] for turn in solutions),
        debate=fmean(sum(spent_on(turn.completion)[1] for turn in debate.turns) for debate in debates),
    )


def _judged(
    config: Config, debates: Sequence[Debate], correct: Sequence[Any], signal: Signal, key: AnswerKey
) -> dict[int, Judged]:
    seed = derive_seed(config.seed, "start", signal.name)
    said = controlled(debates, signal.control, key=key, seed=seed, run_seed=config.seed, share=signal.share)
    return {one.round: Judged.of(one) for one in votes_by_round(said, correct, key)}
