"""Control conditions that replace votes, and thus show how much of a gain is due to judging.

Only the outcomes of votes change, before rewards are computed. Texts, judges and pairs stay the same. Second
ballots (``debate.ask_swapped``) change in the same way. The control "random_reward" replaces truth instead;
see ``rewards.labels``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from debate import Debate, Problem, Vote
from debate.seeds import derive_seed
from debate.types import Outcome, Turn, TurnId
from debate_rl.config import Control, SharedControl
from envs.answers.keys import AnswerKey
from rewards import ballot_box, valid_votes
from rewards.votes import due_pairs

_Pair: TypeAlias = tuple[TurnId, frozenset[TurnId]]
"""The turn of a judge, and the pair of solutions that the judge voted on."""

_OTHER: dict[Outcome, Outcome] = {"left": "right", "right": "left", "tie": "tie"}


def controlled(
    debates: Sequence[Debate],
    control: Control | SharedControl,
    *,
    key: AnswerKey,
    seed: int,
    run_seed: int = 0,
    share: float = 0.0,
) -> list[Debate]:
    """Return a step's debates with votes replaced according to the control. ``key`` compares answers.

    ``share``: the fraction of votes, or of pairs of answers, to reverse. ``seed``: the seed of the step.
    ``run_seed``: the seed of errors that stay the same in all steps.
    """
    if control == "random_judge":
        return [flip_votes(debate, seed=derive_seed(debate.seed, "flip")) for debate in debates]
    if control == "shuffled_votes":
        return shuffle_votes(debates, seed=seed)
    if control == "own_answer":
        return [vote_by_own_answer(debate, key) for debate in debates]
    if control == "flipped_votes":
        return [flip_votes(debate, seed=derive_seed(debate.seed, "flip"), share=share) for debate in debates]
    if control == "shared_errors":
        return [share_errors(debate, key, seed=run_seed, share=share) for debate in debates]
    return list(debates)


def flip_votes(debate: Debate, *, seed: int, share: float = 0.5) -> Debate:
    """Return the debate with the outcome of each decided vote reversed with probability ``share``.

    Ties stay ties. One coin toss decides all votes of a judge's turn on a pair, so repeated votes stay equal,
    contradictions stay contradictions, and the number of valid votes stays the same.
    """
    rng = random.Random(seed)
    coins: dict[_Pair, bool] = {}
    for vote in debate.votes:
        coins.setdefault(_pair(vote), rng.random() < share)
    return _turned(debate, coins)


def share_errors(debate: Debate, key: AnswerKey, *, seed: int, share: float) -> Debate:
    """Return the debate with all votes reversed for a fraction ``share`` of the pairs of answers.

    The run's seed, the problem and the two answers determine which pairs are reversed. All judges of all
    debates on a problem therefore make the same errors in every step. Votes between equal answers do not
    change. Missing answers count as one more answer.
    """
    answers = {
        turn.id: "" if turn.parsed.answer is None else key(debate.problem, turn.parsed.answer)
        for turn in debate.turns
    }
    turned: dict[_Pair, bool] = {}
    for vote in debate.votes:
        pair = sorted((answers.get(vote.left, ""), answers.get(vote.right, "")))
        draw = random.Random(derive_seed(seed, "shared error", debate.problem.id, *pair)).random()
        turned[_pair(vote)] = pair[0] != pair[1] and draw < share
    return _turned(debate, turned)


def shuffle_votes(debates: Sequence[Debate], *, seed: int) -> list[Debate]:
    """Return debates in which "the solution shown first is better" is permuted among all decided votes.

    The number of valid votes for the solution shown first stays the same, so the position bias stays, but
    votes no longer depend on the solutions. Ties stay ties, and contradictions stay void.
    """
    first = [_first_preferred(debate) for debate in debates]
    dealt = [preferred for sides in first for preferred in sides.values()]
    random.Random(seed).shuffle(dealt)
    draw = iter(dealt)
    turned = [{pair: preferred != next(draw) for pair, preferred in sides.items()} for sides in first]
    return [_turned(debate, turns) for debate, turns in zip(debates, turned, strict=True)]


def vote_by_own_answer(debate: Debate, key: AnswerKey) -> Debate:
    """Return the debate as if every judge had preferred the solution with its own newest answer.

    The vote is a tie if both or neither of the solutions have this answer, or if the judge has no answer.
    Judges that only compare solutions with their own answer would vote in this way.
    """
    turns = {turn.id: turn for turn in debate.turns}

    def recast(vote: Vote) -> Vote:
        own = _own_answer(debate, vote.judge)
        left, right = (_same(debate.problem, key, turns[side], own) for side in (vote.left, vote.right))
        return replace(vote, outcome="tie" if left == right else "left" if left else "right")

    return _with_votes(debate, recast)


def _pair(vote: Vote) -> _Pair:
    return vote.judge, frozenset((vote.left, vote.right))


def _turned(debate: Debate, turned: dict[_Pair, bool]) -> Debate:
    def recast(vote: Vote) -> Vote:
        return replace(vote, outcome=_OTHER[vote.outcome]) if turned.get(_pair(vote)) else vote

    return _with_votes(debate, recast)


def _with_votes(debate: Debate, recast: Callable[[Vote], Vote]) -> Debate:
    """Return the debate with ``recast`` applied to every vote, including the votes of second ballots."""
    again = tuple(replace(one, votes=tuple(map(recast, one.votes))) for one in debate.swapped or ())
    return replace(debate, votes=tuple(map(recast, debate.votes)), swapped=again or debate.swapped)


def _first_preferred(debate: Debate) -> dict[_Pair, bool]:
    """Return, for each judge and pair with a decided vote, True if the judge prefers the first solution.

    Pairs on which a judge contradicts itself are left out, because votes on these pairs do not count.
    """
    box = ballot_box(debate)
    votes = valid_votes(box)
    pairs = due_pairs(box, votes)
    first_won = {(pair.judge, frozenset((pair.first, pair.second))) for pair in pairs if pair.verdict == 1}
    return {_pair(vote): _pair(vote) in first_won for vote in votes if vote.outcome != "tie"}


def _own_answer(debate: Debate, judge: TurnId) -> str | None:
    """Return the newest answer of the judge up to its vote."""
    answers = [
        turn.parsed.answer
        for turn in debate.turns
        if turn.id.agent == judge.agent and turn.id.round <= judge.round and turn.parsed.answer is not None
    ]
    return answers[-1] if answers else None


def _same(problem: Problem, key: AnswerKey, turn: Turn, answer: str | None) -> bool:
    other = turn.parsed.answer
    return answer is not None and other is not None and key(problem, other) == key(problem, answer)
