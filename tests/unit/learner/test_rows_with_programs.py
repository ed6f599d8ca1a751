"""Rows of replies in several pieces: what was sampled is learnt, each token with its own log-probability."""

import asyncio
from itertools import count

import msgspec
import numpy as np

from debate import parse_turn
from debate.personas import Persona
from debate.policies.scripted import END_TOKEN, ScriptedPolicy
from debate.tools import Ran
from debate.types import Message, SampleRequest, Turn, TurnId
from debate_rl.inference.tools import ToolPolicy
from learner.advantages import AdvantageConfig, TurnAdvantage
from learner.rows import make_rows
from learner.types import Transition

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
