"""Compute rewards from votes and grades, without a model. This also works on stored debates.

``score_debate`` reads a Debate with the provenance of its turns. ``score_votes`` reads plain tuples and
assumes that every agent sees every solution of the round before. Both fill a ballot box, which is then
scored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence, Set
from types import MappingProxyType

from msgspec import UNSET
from msgspec.structs import replace

from debate.ramps import number
from debate.types import Debate, TurnId, Vote
from rewards.config import RewardConfig
from rewards.criticism import criticised, persuasions
from rewards.judge_rewards import judge_rewards, values_of_votes, with_consistency
from rewards.labels import OF_TRUTH, Credit, credits_of
from rewards.peer import peer_scores
from rewards.routing import by_grades, routed
from rewards.shaping import AnswerKey, Shaping, same_spelling, shaping_of
from rewards.truth import GRADES, formed_turns, score_of, truth_rewards, truth_turns, verdict_reward
from rewards.types import Correct, Likelihoods, PlainVote, Rewards, Stream, Verdicts, check_correct, stream_of
from rewards.votes import DROPPED, BallotBox, ballot_box, ballot_box_of_votes, split_votes, valid_votes


def score_debate(
    debate: Debate,
    correct: Correct,
    config: RewardConfig,
    verdicts: Verdicts | None = None,
    *,
    likelihoods: Likelihoods | None = None,
    key: AnswerKey = same_spelling,
    credit: Credit = OF_TRUTH,
) -> Rewards:
    """Return the rewards of a debate. Credit goes to the exact turns that the judges were shown.

    ``correct[agent][round]`` (N, R) is True, False, None (not graded) or "missing"; None for open problems.
    With ``config.truth_credit = "partial"``, a turn's ``score`` is rewarded instead of its grade, if it has
    one. ``verdicts`` of a verifier model replace truth for the generator if there is no truth; for judges
    they count with ``config.judge_verdict_weight``. ``likelihoods``: the likelihoods of the gold answer, if
    measured. ``key``: the answer key that decides which answers are the same, for the novelty bonus.
    ``credit``: the source of rewards; if it is not truth, ``correct`` is used only for the counters
    (rewards.labels).
    """
    check_correct(correct, debate.protocol.num_agents, debate.protocol.num_rounds)
    box = ballot_box(debate, judge_own=config.judge_own)
    formed = formed_turns(debate, config.form) if config.form_bonus else set[TurnId]()
    scores = {turn.id: score_of(turn) for turn in debate.turns}
    paid = credit.grades_of_truth(correct)
    scores = scores if credit.truth == "truth" else {}
    rewards = _score(box, correct, config, formed, scores, verdicts, credit)
    swap = number(config.swap_weight)
    judge = with_consistency(rewards.judge, debate, swap, judge_own=config.judge_own)
    rewards = replace(rewards, judge=judge) if swap else rewards
    rewards = _with_shaping(rewards, shaping_of(debate, config, key), box)
    rewards = with_likelihood(rewards, likelihoods if credit.truth == "truth" else None, config)
    if debate.protocol.protocol == "critique":
        rewards = _with_persuasion(rewards, debate, box, paid, config)
    if correct is not None or paid is not None or verdicts is None:
        return rewards
    scored = {turn: verdict_reward(verdicts, turn, config) for turn in truth_turns(box, config)}
    return replace(rewards, truth=stream_of(scored, box.num_agents, box.num_rounds))


def score_debates(
    debates: Sequence[Debate],
    correct: Sequence[Correct],
    groups: Sequence[Hashable],
    config: RewardConfig,
    *,
    seed: int,
    verdicts: Sequence[Verdicts | None] = (),
    likelihoods: Sequence[Likelihoods | None] = (),
    key: AnswerKey = same_spelling,
    coins: bool = False,
) -> tuple[list[Rewards], list[Credit]]:
    """Return the rewards of a step's debates, and the credit of each.

    Entry i of each argument belongs to debate i; the debates of a group (one problem) are adjacent. ``seed``:
    the run's seed, which chooses the labelled problems (rewards.labels). ``coins``: as in ``credits_of``.
    """
    credits = credits_of(debates, correct, groups, config, seed=seed, key=key, verdicts=verdicts, coins=coins)
    none = [None] * len(debates)
    of = [*zip(debates, correct, verdicts or none, likelihoods or none, credits, strict=True)]

    def scored(scheme: RewardConfig) -> list[Rewards]:
        return [
            score_debate(debate, grades, scheme, said, likelihoods=read, key=key, credit=credit)
            for debate, grades, said, read, credit in of
        ]

    rewards = scored(config)
    if config.peer_weight != "routed":
        return rewards, credits
    told = [
        tuple(row for agent, row in enumerate(one.truth) if debate.protocol.learns(agent))
        for debate, one in zip(debates, scored(by_grades(config)), strict=True)
    ]
    return routed(rewards, told, groups), credits


def _with_shaping(rewards: Rewards, parts: Mapping[TurnId, Shaping], box: BallotBox) -> Rewards:
    """Return the rewards with a shaping stream and the counts of new, copied and corrected solutions."""
    if not parts:
        return rewards
    stream = stream_of({turn: sum(part) for turn, part in parts.items()}, box.num_agents, box.num_rounds)
    counts = {
        "shaping/new": sum(part.novelty != 0 for part in parts.values()),
        "shaping/copied": sum(part.copy != 0 for part in parts.values()),
        "shaping/corrected": sum(part.correction != 0 for part in parts.values()),
    }
    return replace(rewards, shaping=stream, counters=tuple(sorted((*rewards.counters, *counts.items()))))


def _with_persuasion(
    rewards: Rewards, debate: Debate, box: BallotBox, correct: Correct, config: RewardConfig
) -> Rewards:
    earned = persuasions(criticised(debate, valid_votes(box)), correct, config)
    return replace(rewards, persuasion=stream_of(earned, box.num_agents, box.num_rounds))


def score_votes(
    num_agents: int,
    num_rounds: int,
    votes: Sequence[PlainVote],
    correct: Correct,
    config: RewardConfig,
    *,
    final_ballot: bool = True,
) -> Rewards:
    """Return the rewards of plain votes ``(judge, judge_round, left, right, outcome)``.

    Each vote is on solutions of round ``judge_round - 1``. Round ``num_rounds`` is the final ballot.
    ValueError names an invalid entry.

    >>> wins = [(2, 1, 0, 1, "left"), (1, 1, 0, 2, "left"), (0, 1, 1, 2, "tie")]
    >>> rewards = score_votes(3, 1, wins, [[True], [False], ["missing"]], RewardConfig())
    >>> rewards.peer, rewards.judge
    (((1.0,), (-0.5,), (-0.5,)), ((None, None), (None, 1.0), (None, 1.0)))
    """
    check_correct(correct, num_agents, num_rounds)
    own = config.judge_own
    box = ballot_box_of_votes(num_agents, num_rounds, votes, judge_own=own, final_ballot=final_ballot)
    return _score(box, correct, config)


def _score(
    box: BallotBox,
    correct: Correct,
    config: RewardConfig,
    formed: Set[TurnId] = frozenset(),
    scores: Mapping[TurnId, float | None] = MappingProxyType({}),
    verdicts: Verdicts | None = None,
    credit: Credit = OF_TRUTH,
) -> Rewards:
    votes, dropped = split_votes(box)
    peer = peer_scores(config.peer, votes, alpha=config.bradley_terry_alpha)
    known = credit.grades_of_judges(correct)
    judge = judge_rewards(votes, values_of_votes(votes, known, config, verdicts))
    penalties = format_rewards(box, votes, config.format_penalty)
    truth = truth_rewards(box, credit.grades_of_truth(correct), config, formed, scores)
    return Rewards(
        peer=stream_of(peer, box.num_agents, box.num_rounds),
        truth=stream_of(truth, box.num_agents, box.num_rounds),
        judge=stream_of(judge, box.num_agents, box.num_rounds + 1),
        format=stream_of(penalties, box.num_agents, box.num_rounds + 1),
        counters=count_all(box, votes, dropped, correct=correct, judged=len(judge)),
    )


def format_rewards(box: BallotBox, votes: Sequence[Vote], penalty: float) -> dict[TurnId, float]:
    """Return ``penalty`` for turns that owed comparisons and cast no valid vote, and 0.0 for other turns."""
    penalized = penalized_turns(box, votes)
    return {turn: penalty if turn in penalized else 0.0 for turn in box.comparable}


def penalized_turns(box: BallotBox, votes: Sequence[Vote]) -> set[TurnId]:
    """Return the turns that owed comparisons and cast no valid vote. Turns of round 0 never owe any."""
    return set(box.due()) - {vote.judge for vote in votes}


def count_all(
    box: BallotBox, votes: Sequence[Vote], dropped: Mapping[str, int], *, correct: Correct, judged: int
) -> tuple[tuple[str, int], ...]:
    """Return the sorted counters of one debate.

    All debates have the same counter names, so that columns are constant.

    ``votes/cast`` = ``votes/valid`` + all drop reasons, in lines. ``votes/ties`` are included in the valid
    votes. ``judge/due`` counts the turns that owed comparisons, ``judge/signal`` the turns with a judge
    reward, and ``format/penalties`` the turns with a format penalty. ``grades/*`` count solution turns by
    grade; all are 0 for an open problem.
    """
    ties = sum(vote.outcome == "tie" for vote in votes)
    counts = {f"votes/{reason}": dropped.get(reason, 0) for reason in DROPPED}
    counts |= {"votes/cast": len(votes) + sum(counts.values()), "votes/valid": len(votes), "votes/ties": ties}
    counts |= {"judge/due": len(box.due()), "judge/signal": judged}
    counts |= {"format/penalties": len(penalized_turns(box, votes))} | _grades(box, correct)
    return tuple(sorted(counts.items()))


def _grades(box: BallotBox, correct: Correct) -> dict[str, int]:
    seen: Counter[str] = Counter()
    if correct is not None:
        seen.update(GRADES[correct[turn.agent][turn.round]] for turn in box.solutions())
    return {f"grades/{name}": seen[name] for name in GRADES.values()}


def likelihood_stream(likelihoods: Likelihoods) -> Stream:
    """Return each solution's likelihood reward, (N, R): its mean log-probability minus the baseline's.

    >>> likelihood_stream(Likelihoods(((-0.5, None),), -2.0))
    ((1.5, None),)
    """
    baseline = likelihoods.baseline or 0.0
    return tuple(
        tuple(None if value is None else value - baseline for value in row) for row in likelihoods.logprobs
    )


def with_likelihood(rewards: Rewards, likelihoods: Likelihoods | None, config: RewardConfig) -> Rewards:
    """Return the rewards with a likelihood stream, if the scheme has one and it was measured."""
    if likelihoods is None or not config.reads_likelihood:
        return replace(rewards, likelihood=UNSET)
    return replace(rewards, likelihood=likelihood_stream(likelihoods))
