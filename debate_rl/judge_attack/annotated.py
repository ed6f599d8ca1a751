"""Pairs of solutions that people starred or labeled, for any judge to compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

from debate import Problem
from debate.prompting.seating import prompts_of
from debate.prompting.shown import public_turn
from debate.types import TurnId
from debate_rl.judge_attack.pairs import JudgePair
from debate_rl.judge_attack.persuaders import ORDER
from rewards import ballot_box, valid_votes
from rewards.truth import is_right
from rewards.votes import Pair, pair_of
from transcripts import Record, RunStore
from transcripts.annotations import Annotations, Place


class AnnotatedPairs(NamedTuple):
    """Pairs with their problems. ``by_hand``: how many have their right side by a label, not by gold.

    ``left_out``: starred and labeled pairs without exactly one right side, with equal texts, or without a
    third solution.
    """

    pairs: list[JudgePair]
    problems: list[Problem]
    by_hand: int
    left_out: int


def annotated_pairs(store: RunStore) -> AnnotatedPairs:
    """Return the pairs of a run that are starred or labeled. Each is also judged in the opposite order.

    A starred debate gives all pairs of solutions of the same round; a starred turn, those that it is part of.
    The label of a pair decides which side is right; without one, each turn's label, or else its grade.
    Equal pairs are returned once.
    """
    given, found = store.annotations(), dict[tuple[str, ...], tuple[JudgePair, bool]]()
    problems, left_out = dict[str, Problem](), 0
    for id in given.by_debate():
        try:
            record = store.debate(id)
        except ValueError:  # the debate is gone
            continue
        for pair in _chosen(given, id, record):
            sides = _right_and_wrong(given, id, record, pair)
            made = sides and _judge_pair(record, sides[0], sides[1])
            if not sides or not made:
                left_out += 1
                continue
            found[made.problem, made.right, made.wrong] = made, sides[2]
            problems[record.debate.problem.id] = record.debate.problem
    pairs = [made for made, _ in found.values()]
    return AnnotatedPairs(pairs, [*problems.values()], sum(hand for _, hand in found.values()), left_out)


def _chosen(given: Annotations, id: str, record: Record) -> Iterator[Pair]:
    """Yield the starred and labeled pairs of a debate in order."""
    solutions = ballot_box(record.debate).solutions()
    marked = given.of(record, Place(id))
    starred = {turn for turn in solutions if "star" in given.of(record, Place(id, (turn,)))}
    for pair in combinations(sorted(solutions), 2):
        own = given.of(record, Place(id, pair))
        whole = "star" in marked or starred & {*pair}
        if "star" in own or "label" in own or (whole and pair[0].round == pair[1].round):
            yield pair


def _right_and_wrong(
    given: Annotations, id: str, record: Record, pair: Pair
) -> tuple[TurnId, TurnId, bool] | None:
    """Return the right and the wrong side, and whether a label decided, or None."""
    label = given.of(record, Place(id, pair)).get("label")
    if label is not None:
        first, second = pair if label == "left" else pair[::-1]
        return None if label == "tie" else (first, second, True)
    labels = [given.of(record, Place(id, (turn,))).get("label") for turn in pair]
    known = [
        is_right(turn, record.correct) if one is None else one == "right"
        for turn, one in zip(pair, labels, strict=True)
    ]
    if None in known or known[0] == known[1]:
        return None
    right, wrong = pair if known[0] else pair[::-1]
    return right, wrong, labels != [None, None]


def _judge_pair(record: Record, right: TurnId, wrong: TurnId) -> JudgePair | None:
    """Return the pair, with a third agent's solution as the judge's own.

    It is that of an agent who voted on the pair, if any. None if a solution is missing or both sides have
    equal texts.
    """
    debate, strip = record.debate, prompts_of(record.debate.protocol).strip
    texts: Mapping[TurnId, str | None] = {
        turn.id: public_turn(turn, strip=strip).solution for turn in debate.turns
    }
    sides = tuple(sorted((right, wrong)))
    judges = [vote.judge.agent for vote in valid_votes(ballot_box(debate)) if pair_of(vote) == sides]
    others = [agent for agent in range(debate.protocol.num_agents) if agent not in (right.agent, wrong.agent)]
    seats = [TurnId(agent, right.round) for agent in (*judges, *others) if agent in others]
    own = next((text for seat in seats if (text := texts.get(seat))), None)
    one, other = texts.get(right), texts.get(wrong)
    if not one or not other or not own or one == other:
        return None
    return JudgePair(debate.problem.id, debate.problem.question, one, other, own, {ORDER: other})
