"""Debates written by hand: three agents K7, Q2 and M4 whose replies are read as in any debate."""

import io
from dataclasses import replace

import pytest

from debate import Completion, Debate, DebateConfig, Persona, Problem, Turn
from debate.hold import votes_of
from debate.reply import read_reply
from debate.types import TurnId
from debate_rl.inspector.plain import Printer, print_debate
from rewards import RewardConfig, score_debate
from transcripts import Record

HANDLES = ("K7", "Q2", "M4")
PROBLEM = Problem("p/1", "What is 2 + 2?", "4", "sums", "Level 1", "number")


def solved(answer, comparison=""):
    """A reply with a solution, and a comparison if there is one."""
    reply = f"<solution>It is \\boxed{{{answer}}}.</solution>"
    if comparison:
        reply += f"<evaluation>Fine.</evaluation><comparison>{comparison}</comparison>"
    return reply


def judged(comparison):
    """A reply of a final ballot."""
    return f"<evaluation>Fine.</evaluation><comparison>{comparison}</comparison>"


def make(replies, *, own=False, scored=True, problem=PROBLEM, reason="stop", **config):
    """A record; ``replies[round][agent]``, the last round being a ballot if it has no solutions."""
    ballot = "<solution>" not in "".join(replies[-1]) and len(replies) > 1
    rounds = len(replies) - ballot
    protocol = DebateConfig(num_agents=3, num_rounds=rounds, judge_own=own, final_ballot=ballot, **config)
    turns = [
        turn_of(TurnId(agent, round_), text, protocol, problem, ballot=round_ == rounds, reason=reason)
        for round_, texts in enumerate(replies)
        for agent, text in enumerate(texts)
    ]
    personas = tuple(Persona(name, "work") for name in ("Analyst", "Advocate", "Solver"))
    votes = tuple(vote for turn in turns for vote in votes_of(turn, HANDLES))
    debate = Debate(problem, personas, tuple(turns), votes, 7, 3, protocol)
    correct = tuple(
        tuple(grade(debate.turn(TurnId(agent, round_)), problem) for round_ in range(rounds))
        for agent in range(3)
    )
    rewards = score_debate(debate, correct, RewardConfig(judge_own=own))
    return Record(debate, 5, problem.id, correct, rewards if scored else None)


def turn_of(id, text, protocol, problem, *, ballot, reason):
    shown = tuple(TurnId(seat, id.round - 1) for seat in range(3)) if id.round else ()
    compared = tuple(one for one in shown if protocol.judge_own or one.agent != id.agent)
    completion = Completion((), (), (), text, reason, 3, token_count=len(text))
    own, due = None if protocol.judge_own else HANDLES[id.agent], len(compared) >= 2
    about = {"due": due, "in_thinking": False, "ballot": ballot, "kind": problem.kind}
    parsed = read_reply(completion, handles=HANDLES, own=own, **about)
    return Turn(id, HANDLES[id.agent], shown, completion, parsed, compared, ballot=ballot)


def grade(turn, problem):
    return "missing" if turn.parsed.answer is None else turn.parsed.answer == problem.answer


def with_turn(record, which, /, **changes):
    """The record with other fields in one turn."""
    turns = tuple(replace(turn, **changes) if turn.id == which else turn for turn in record.debate.turns)
    return replace(record, debate=replace(record.debate, turns=turns))


def printed(show, *arguments, colour=False, width=None, as_json=False, **options):
    """The text that ``show`` prints on a printer, its last positional argument."""
    stream = io.StringIO()
    show(*arguments, Printer(stream, colour, width, as_json), **options)
    return stream.getvalue()


def printed_debate(record, **options):
    return printed(print_debate, "5.0", record, **options)


@pytest.fixture
def tied():
    """All votes are ties, so that the winner is drawn by lot."""
    ballot = [judged("Q2 = M4"), judged("K7 = M4"), judged("K7 = Q2")]
    return make([[solved(4), solved(5), solved(4)], ballot])


@pytest.fixture
def circle():
    """Round 0: K7 right, the others wrong; each judge casts one vote, and they go in a circle.

    Round 1: all right; the ballot has a tie, a vote cast twice, and lines that are no votes.
    """
    answers = [solved(4), solved(5), solved(6)]
    votes = [solved(4, "Q2 > M4"), solved(4, "M4 > K7"), solved(4, "K7 > Q2")]
    ballot = [judged("Q2 = M4"), judged("K7 > M4\nM4 < K7\nK7 ? M4"), judged("K7 > Q2\nQ2 > K7\nZ9 > Q2")]
    return make([answers, votes, ballot])
