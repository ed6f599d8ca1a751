"""Held-out figures: what one agent answers, what a debate does, and what its tokens buy without debate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from random import Random

from debate import Debate, DebateConfig, Policy, Problem, run_debates
from debate.parsing.wellformed import is_well_formed
from debate.seeds import derive_seed
from debate.types import Summary, Turn
from envs import DataError, Environment, EnvironmentSpecError
from envs.sameness import key_of
from learner.grading import Table, grade_debate
from learner.metrics.answers import Answer, consensus
from learner.metrics.debates import is_valid
from learner.metrics.statistics import Estimate, clustered_mean
from rewards import RewardConfig, Rewards, score_debate, voted_winner
from rewards.winner import last_judged_round


@dataclass(frozen=True, slots=True)
class Tokens:
    """Mean tokens spent on one problem, and the share of replies that the token limit cut off."""

    generated: float
    prompt: float
    truncated: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Figures on held-out problems; intervals are clustered by problem.

    ``rounds`` (R,): accuracy of all agents by round. ``winner``: accuracy of the voted winner of the last
    judged round. ``self_consistency``: majority of ``samples`` first-round answers, which spend the tokens a
    debate generates. Differences are paired by problem; with one round ``round2_minus_round1`` is 0.
    ``valid_xml``: share of the ``turns`` that are well-formed XML and in which every due section was read,
    nothing else was wrong, and due comparisons gave a vote. ``ungraded``: problems left out of all accuracies
    because the grader gave no verdict (time-out, crash) on an answer: that is never "wrong".
    """

    rounds: tuple[Estimate, ...]
    winner: Estimate
    self_consistency: Estimate
    winner_minus_self_consistency: Estimate
    winner_minus_round1: Estimate
    round2_minus_round1: Estimate
    valid_xml: float
    turns: int
    samples: int
    debate_tokens: Tokens
    self_consistency_tokens: Tokens
    ungraded: int = 0

    def metrics(self) -> dict[str, float]:
        """Return the figures under the names of metrics.jsonl, with the bounds of their 95% intervals."""
        estimates = {f"debate/round_{r}": figure for r, figure in enumerate(self.rounds)} | {
            "debate/winner": self.winner,
            "direct/self_consistency": self.self_consistency,
            "debate/winner_minus_self_consistency": self.winner_minus_self_consistency,
        }
        figures: dict[str, float] = {}
        for name, estimate in estimates.items():
            figures[f"eval/{name}"] = estimate.value
            figures |= {f"eval/{name}/low": estimate.low, f"eval/{name}/high": estimate.high}
        return figures | {
            "eval/debate/valid_xml": self.valid_xml,
            "eval/debate/truncated": self.debate_tokens.truncated,
            "eval/direct/truncated": self.self_consistency_tokens.truncated,
            "eval/problems": float(self.winner.clusters),
            "eval/ungraded": float(self.ungraded),
        }


def evaluate(
    policy: Policy, environment: Environment, problems: Sequence[Problem], *, config: DebateConfig, seed: int
) -> Evaluation:
    """Return the figures of one debate per problem and of self-consistency at equal generated tokens.

    The policy must report tokens. Problems without an answer are refused. DataError when the grader gave no
    verdict on any problem.
    """
    held = run_debates(problems, policy, config, seed=derive_seed(seed, "debates"))
    tables = [_graded(environment, debate) for debate in held]
    scheme = RewardConfig(judge_own=config.judge_own)
    rewards = [score_debate(d, t, scheme) for d, t in zip(held, tables, strict=True)]
    spent = _tokens([reply for debate in held for reply in (*debate.turns, *debate.summaries)], len(held))
    opening = [len(t.completion.tokens) for d in held for t in d.turns if t.id.round == 0]
    samples = max(1, round(spent.generated / (sum(opening) / len(opening))))
    polled, cost = _self_consistency(policy, environment, problems, config, samples, seed)
    kept = [i for i, table in enumerate(tables) if polled[i] is not None and _is_graded(table)]
    if not kept:
        raise DataError(f"held_out: the grader gave no verdict on any of {len(problems)} problems")
    won = [winner_is_right(held[i], tables[i], rewards[i]) for i in kept]
    majority = [polled[i] or 0.0 for i in kept]
    ids, tables = [problems[i].id for i in kept], [tables[i] for i in kept]
    first, second = ([_share_right(t, r) for t in tables] for r in (0, min(1, config.num_rounds - 1)))
    valid = [
        is_valid(turn, reward) and is_well_formed(turn.completion.text)
        for debate, reward in zip(held, rewards, strict=True)
        for turn in debate.turns
    ]
    return Evaluation(
        rounds=tuple(_accuracy(ids, tables, r) for r in range(config.num_rounds)),
        winner=clustered_mean(won, ids),
        self_consistency=clustered_mean(majority, ids),
        winner_minus_self_consistency=_difference(won, majority, ids),
        winner_minus_round1=_difference(won, first, ids),
        round2_minus_round1=_difference(second, first, ids),
        valid_xml=sum(valid) / len(valid),
        turns=len(valid),
        samples=samples,
        debate_tokens=spent,
        self_consistency_tokens=cost,
        ungraded=len(problems) - len(kept),
    )


def _graded(environment: Environment, debate: Debate) -> Table:
    table = grade_debate(environment, debate)
    if table is None:
        raise EnvironmentSpecError(f"problem {debate.problem.id}: an open problem cannot be evaluated")
    return table


def _is_graded(table: Table) -> bool:
    return all(grade is not None for seat in table for grade in seat)


def _accuracy(ids: Sequence[str], tables: Sequence[Table], round_: int) -> Estimate:
    right = [float(seat[round_] is True) for table in tables for seat in table]
    return clustered_mean(right, [i for i, table in zip(ids, tables, strict=True) for _ in table])


def _share_right(table: Table, round_: int) -> float:
    return sum(seat[round_] is True for seat in table) / len(table)


def _difference(values: Sequence[float], minus: Sequence[float], ids: Sequence[str]) -> Estimate:
    """Return the mean difference, paired by problem."""
    return clustered_mean([a - b for a, b in zip(values, minus, strict=True)], ids, signed=True)


def winner_is_right(debate: Debate, table: Table, rewards: Rewards) -> float:
    """Return 1.0 when the voted winner is right; without any vote an agent of the last round is drawn."""
    round_, winner = last_judged_round(rewards), voted_winner(rewards, seed=debate.seed)
    if round_ is None or winner is None:
        drawn = Random(derive_seed(debate.seed, "no votes")).randrange(len(table))
        return float(table[drawn][-1] is True)
    return float(table[winner][round_] is True)


def _self_consistency(
    policy: Policy,
    environment: Environment,
    problems: Sequence[Problem],
    config: DebateConfig,
    samples: int,
    seed: int,
) -> tuple[list[float | None], Tokens]:
    """Return for each problem the chance that the majority of its answers is right, and their tokens.

    None for a problem of which an answer was not graded; wrong answers are counted together as the
    environment tells them apart (``envs.sameness``). The answers are first-round turns under the debate's
    own personas and prompts.
    """
    copies = ceil(samples / config.num_agents)
    opening = config.model_copy(update={"num_rounds": 1, "final_ballot": False})
    repeated = [problem for problem in problems for _ in range(copies)]
    held = run_debates(repeated, policy, opening, seed=derive_seed(seed, "self-consistency"))
    right: list[float | None] = []
    used: list[Turn] = []
    for start in range(0, len(held), copies):
        turns = [(debate, turn) for debate in held[start : start + copies] for turn in debate.turns][:samples]
        answers = [_answer(environment, *pair) for pair in turns]
        graded = [answer for answer in answers if answer is not None]
        right.append(consensus(graded) if len(graded) == len(answers) else None)
        used += [turn for _, turn in turns]
    return right, _tokens(used, len(problems))


def _answer(environment: Environment, debate: Debate, turn: Turn) -> Answer | None:
    text = turn.parsed.answer
    grade = environment.grade(debate.problem, text)
    key = None if text is None else key_of(environment)(debate.problem, text)
    return None if grade.verdict is None else Answer(key, grade.verdict is True)


def _tokens(turns: Sequence[Turn | Summary], problems: int) -> Tokens:
    """Return the mean tokens of one problem, and how many replies were cut off."""
    generated = sum(len(turn.completion.tokens) for turn in turns)
    prompt = sum(len(turn.completion.prompt_tokens) for turn in turns)
    truncated = sum(turn.completion.stop_reason == "length" for turn in turns)
    return Tokens(generated / problems, prompt / problems, truncated / len(turns))
