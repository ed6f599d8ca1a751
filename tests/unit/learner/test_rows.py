import asyncio
from dataclasses import replace
from itertools import count

import msgspec
import numpy as np
import pytest

from debate.config import DebateConfig
from debate.parsing import parse_turn
from debate.personas import PERSONAS, Persona
from debate.policies.scripted import END_TOKEN, ScriptedPolicy
from debate.tools import Ran
from debate.types import Completion, Debate, Message, Problem, SampleRequest, Turn, TurnId, Vote
from debate_rl.inference.tools import ToolPolicy
from learner import AdvantageConfig, Row, TurnAdvantage, make_rows, transitions_of, turn_advantages
from learner.advantages.context_effects import context_of, right_by_debate, sides_of
from learner.rows import token_advantages
from learner.types import Transition
from rewards import RewardConfig
from rewards.types import Rewards

SOLVE = "<solution>7</solution>"
JUDGED = SOLVE + "<comparison>A > B</comparison>"
HANDLES = ("A", "B", "C")
PLAIN = AdvantageConfig()


def turn_of(text: str, agent: int, round_: int, *, ballot: bool = False) -> Turn:
    """One token for each character, and the end token."""
    count = len(text) + 1
    completion = Completion(
        (5, 0), tuple(range(count)), (-0.25,) * count, text, "stop", 3, tuple(range(count))
    )
    parsed = parse_turn(text, handles=HANDLES, own=HANDLES[agent], due=round_ > 0)
    shown = tuple(TurnId(peer, round_ - 1) for peer in range(3) if peer != agent) if round_ else ()
    return Turn(TurnId(agent, round_), HANDLES[agent], shown, completion, parsed, shown, ballot=ballot)


def debate_of(seed: int = 0) -> Debate:
    """Three agents, one round and a ballot in which agent 2 votes A > B."""
    solutions = [turn_of(SOLVE, agent, 0) for agent in range(3)]
    ballots = [turn_of("<comparison>A > B</comparison>", agent, 1, ballot=True) for agent in range(3)]
    votes = (Vote(TurnId(2, 1), TurnId(0, 0), TurnId(1, 0), "left"),)
    problem, turns = Problem("p", "2 + 5?", "7"), tuple(solutions + ballots)
    return Debate(problem, PERSONAS[:3], turns, votes, seed, 3, DebateConfig(num_rounds=1))


REWARDS = Rewards(
    peer=((1.0,), (-1.0,), (None,)),
    truth=((1.0,), (0.0,), (None,)),
    judge=((None, None), (None, None), (None, 0.5)),
    format=((0.0, -0.5), (0.0, -0.5), (0.0, 0.0)),
)


def test_the_turns_of_a_group_stand_debate_by_debate_and_agent_by_agent():
    turns = transitions_of([debate_of(0), debate_of(1)], [REWARDS, REWARDS], [0, 0])
    assert {(turn.problem_id, turn.group) for turn in turns} == {("p", 0)}
    assert [turn.debate for turn in turns] == [0] * 6 + [1] * 6
    assert [turn.turn.id for turn in turns] == [TurnId(a, r) for a in range(3) for r in range(2)] * 2
    assert [turn.persona for turn in turns[::2]] == list(PERSONAS[:3]) * 2
    solution, ballot = turns[:2]
    assert (solution.peer, solution.truth, solution.judge, solution.format) == (1.0, 1.0, None, 0.0)
    assert (ballot.peer, ballot.truth, ballot.judge, ballot.format) == (None, None, None, -0.5)


def test_a_judge_that_learns_is_shown_right_and_wrong_solutions_of_frozen_seats():
    protocol = DebateConfig(num_rounds=1, seats=("frozen", "frozen", "learning"))
    turns = transitions_of([replace(debate_of(), protocol=protocol)], [REWARDS], [0])
    assert [one.turn.id for one in turns] == [TurnId(2, 0), TurnId(2, 1)]
    assert sides_of(turns, 1.0) == [0, 1]
    ballot = turns[1].turn
    assert context_of(ballot, right_by_debate(turns, 1.0)[0]) == (None, 1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"problem": Problem("q", "?")}, "exactly one problem"), ({"personas": PERSONAS[:2]}, "2 personas")],
)
def test_a_group_of_two_problems_and_a_turn_of_nobody_are_refused(changes, said):
    with pytest.raises(ValueError, match=said):
        transitions_of([debate_of(), replace(debate_of(), **changes)], [REWARDS, REWARDS], [0, 0])


def rows_of(*parts: TurnAdvantage | None, text: str = JUDGED, config: AdvantageConfig = PLAIN, **changes):
    """Rows of one agent's turns in round 1, one for each part; ``changes`` are those of the completion."""
    turn = turn_of(text, 0, 1)
    turn = replace(turn, completion=replace(turn.completion, **changes))
    debate = replace(debate_of(), turns=(turn,) * len(parts), personas=PERSONAS[:1])
    rewards = Rewards(((None, None),), ((None, None),), ((None, None),), ((None, None),))
    return make_rows(transitions_of([debate], [rewards], [0]), parts, config)


@pytest.mark.parametrize(
    ("part", "solution", "judge"),
    [(TurnAdvantage(1.0, -2.0, None), 1.0, -2.0), (TurnAdvantage(None, 1.0, -0.5), 0.0, 0.5)],
)
def test_each_stream_gets_its_own_advantage_only_and_the_format_goes_to_the_judge(part, solution, judge):
    (row,) = rows_of(None, part, None)  # turns without signal give no row
    count = len(JUDGED) - len(SOLVE) + 1
    assert row.stream.tolist() == [0, 0] + [1] * len(SOLVE) + [2] * count
    assert row.advantages.tolist() == [0, 0] + [solution] * len(SOLVE) + [judge] * count


def test_a_row_is_the_prompt_and_then_the_completion():
    (row,) = rows_of(TurnAdvantage(1.0, -2.0, None))
    length = len(JUDGED) + 1
    assert row.input_ids.tolist() == [5, 0, *range(length)]
    assert row.action_mask.tolist() == [False, False] + [True] * length
    assert row.sampling_logprobs.tolist() == [0, 0] + [-0.25] * length
    assert (row.group_id, row.policy_version, row.turn) == ("p", 3, TurnId(0, 1))
    assert row.temperature == PERSONAS[0].temperature
    arrays = row.input_ids, row.action_mask, row.advantages, row.stream
    assert [array.dtype for array in arrays] == [np.int64, np.bool_, np.float32, np.int8]


@pytest.mark.parametrize(
    ("evaluation", "advantage", "stream"), [("generator", 1.0, 1), ("judge", -2.5, 2), ("both", -1.5, 2)]
)
def test_an_evaluation_gets_whose_advantage_it_is_said_to_get(evaluation, advantage, stream):
    """Generator +1, judge -2, format -0.5: the sum of the former is -1, and the last is the judge's, once."""
    review = "<evaluation>A errs.</evaluation>"
    text = f"{SOLVE}{review}<comparison>A > B</comparison>"
    (row,) = rows_of(TurnAdvantage(1.0, -2.0, -0.5), text=text, config=AdvantageConfig(evaluation=evaluation))
    before, judge = len(SOLVE), len(text) - len(SOLVE) - len(review) + 1
    assert row.advantages.tolist() == [0, 0] + [1.0] * before + [advantage] * len(review) + [-2.5] * judge
    assert row.stream.tolist() == [0, 0] + [1] * before + [stream] * len(review) + [2] * judge


@pytest.mark.parametrize(("stop_reason", "last"), [("stop", 0.5), ("length", 1.0)])
def test_no_token_of_a_right_solution_is_fined_for_the_comparison_behind_it(stop_reason, last):
    """Generator +1; the end token came in the comparison's place, but where the reply was cut off."""
    (row,) = rows_of(TurnAdvantage(1.0, None, -0.5), text=SOLVE, stop_reason=stop_reason)
    assert row.advantages.tolist() == [0, 0] + [1.0] * len(SOLVE) + [last]


def test_a_reply_that_was_cut_off_before_its_comparison_is_no_row_for_its_form_alone():
    assert rows_of(TurnAdvantage(None, None, -0.5), text=SOLVE, stop_reason="length") == []
    assert len(rows_of(TurnAdvantage(None, None, -0.5), text=SOLVE, stop_reason="stop")) == 1


def learned(debates: list[Debate], rewards: list[Rewards]) -> list[Row]:
    """Rows of debates, each of which is a group of its own."""
    transitions = transitions_of(debates, rewards, range(len(debates)))
    advantages = turn_advantages(transitions, RewardConfig(), AdvantageConfig(), {})
    return make_rows(transitions, advantages.turns, PLAIN)


def test_a_ballot_is_all_judge():
    rows = learned([debate_of()], [REWARDS])
    # generators 0 and 1, two ballots without a vote and one with: -0.5 and 0 less their mean -1/3, and of
    # the rest a half is taken for the persona's, which has one turn and another temperature
    assert [row.turn for row in rows] == [*(TurnId(a, r) for a in (0, 1) for r in (0, 1)), TurnId(2, 1)]
    assert set(rows[1].stream[rows[1].action_mask]) == {2}
    assert set(rows[1].advantages[rows[1].action_mask]) == {np.float32(-1 / 12)}
    assert set(rows[4].advantages[rows[4].action_mask]) == {np.float32(1 / 6)}


def test_temperature_zero_is_learned_at_temperature_one():
    debate = replace(debate_of(), personas=(replace(PERSONAS[0], temperature=0.0), *PERSONAS[1:3]))
    assert learned([debate], [REWARDS])[0].temperature == 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": (), "logprobs": (), "offsets": ()}, "problem 'p', agent 0, round 1: .* no token ids"),
        ({"prompt_tokens": ()}, "gave no token ids"),
        ({"logprobs": (-1.0,)}, "tokens but 1 log-probabilities"),
        ({"offsets": (0,)}, "but 1 offsets"),
    ],
)
def test_turns_that_cannot_be_learned_from_are_errors(changes, message):
    with pytest.raises(ValueError, match=message):
        rows_of(TurnAdvantage(1.0, None, None), **changes)


def test_a_critics_tokens_get_its_advantage_and_the_votes_beside_it_that_of_the_format():
    stream = np.array([0, 4, 4, 2, 1], np.int8)
    part = TurnAdvantage(1.0, 2.0, -0.5, critic=3.0)
    assert token_advantages(stream, part).tolist() == [0.0, 3.0, 3.0, 1.5, 1.0]


FIRST, SECOND = "<solution>```python\n1\n```\n", "so:\n```python\n2\n```"
LAST = "\\boxed{4}</solution><comparison>K7 > Q2</comparison>"
REQUEST = SampleRequest((Message("user", "?"),), 1.0, 400, ("</comparison>",), 7, "d", TurnId(0, 0))


class Numbered(ScriptedPolicy):
    """Every token that is sampled has a log-probability of its own: -1, -2, ..."""

    def __init__(self, *pieces):
        self.values = count(1)
        written = iter(pieces)
        super().__init__(lambda _: next(written), tokens=True)

    async def sample(self, request):
        piece = await super().sample(request)
        return msgspec.structs.replace(piece, logprobs=tuple(-float(next(self.values)) for _ in piece.tokens))


def test_a_row_of_two_programs_learns_what_was_sampled_alone(programs):
    programs.results = dict.fromkeys(("1\n", "2\n"), Ran("ok", "Q2 > K7\n"))  # a vote
    reply = asyncio.run(ToolPolicy(Numbered(FIRST, SECOND, LAST), programs).sample(REQUEST))
    block = "```output\nQ2 > K7\n```\n"
    assert reply.text == f"{FIRST}{block}{SECOND}\n{block}{LAST}"
    parsed = parse_turn(reply.stated, handles=("A2", "K7", "Q2"), own="A2", due=True)
    turn = Turn(TurnId(0, 0), "A2", (), reply, parsed)
    transition = Transition(turn, Persona("p", "", 1.0), "p")
    [row] = make_rows([transition], [TurnAdvantage(2.0, -3.0, None)], AdvantageConfig())
    here = slice(len(reply.prompt_tokens), None)
    sampled = (
        [1] * len(FIRST) + [0] * len(block) + [1] * len(SECOND) + [0] * len(f"\n{block}") + [1] * len(LAST)
    )
    assert row.action_mask[here].tolist() == [bool(one) for one in sampled]
    # an end token was sampled behind the second program, with the next number, and taken back
    own = len(FIRST) + len(SECOND)
    numbers = [*range(1, own + 1), *range(own + 2, own + 2 + len(LAST))]
    assert row.sampling_logprobs[here][row.action_mask[here]].tolist() == [-float(one) for one in numbers]
    assert not row.sampling_logprobs[here][~row.action_mask[here]].any()
    assert END_TOKEN not in row.input_ids
    vote = len("<comparison>K7 > Q2</comparison>")
    expected = np.where(sampled, 2.0, 0.0)
    expected[-vote:] = -3.0
    assert row.advantages[here].tolist() == expected.tolist()
    assert (row.stream[here] == 0).tolist() == [not one for one in sampled]
