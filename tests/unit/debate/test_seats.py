import asyncio
from itertools import product

import pytest
import torch
from pydantic import ValidationError

from debate import DebateConfig, Problem, run_debates
from debate.policies.scripted import ScriptedPolicy
from debate.types import Message, SampleRequest, TurnId
from debate_rl.inference.local import LocalPolicy
from debate_rl.inference.tools import ToolPolicy
from debate_rl.inference.wrapped import SeatedPolicy

PROBLEM = Problem("p", "What is 2 + 2?", "4", level="easy")
SEATS = ("learning", "remote", "frozen")


def says(answer: str) -> ScriptedPolicy:
    return ScriptedPolicy(lambda _: f"<solution>\\boxed{{{answer}}}</solution>")


def test_every_agent_is_spoken_for_by_its_seat():
    own, other = says("4"), says("5")
    config = DebateConfig(seats=SEATS, num_rounds=2)
    [debate] = run_debates([PROBLEM], SeatedPolicy(own, other), config, seed=1)
    assert {request.turn.agent for request in other.requests} == {1}
    assert {(request.turn.agent, request.seat) for request in own.requests} == {
        (0, "learning"),
        (2, "frozen"),
    }
    answers = {(turn.id.agent, turn.parsed.answer) for turn in debate.turns if not turn.ballot}
    assert answers == {(0, "4"), (1, "5"), (2, "4")}
    assert debate.protocol.seats == SEATS


def test_a_remote_seat_without_a_model_is_refused():
    with pytest.raises(ValueError, match=r'debate.seats: "remote", but this policy has no'):
        run_debates([PROBLEM], says("4"), DebateConfig(seats=SEATS, num_rounds=1), seed=1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seats": ["learning"]}, "seats: 1 are given, but num_agents = 3"),
        ({"seats": ["frozen", "remote", "remote"]}, "no agent learns"),
        (
            {
                "seats": ["frozen", "frozen", "learning"],
                "by_level": [{"level": "easy", "num_agents": 2, "num_rounds": 2}],
            },
            r"by_level.0 \(level 'easy'\): seats: frozen, frozen: no agent learns",
        ),
    ],
)
def test_what_does_not_match_the_protocol_is_refused(settings, message):
    with pytest.raises(ValidationError, match=message):
        DebateConfig.model_validate(settings)


def request(number: int, seat: str) -> SampleRequest:
    messages = (Message("user", f"hello {number}"),)
    return SampleRequest(messages, 1.0, 12, (), number, f"{number:03d}", TurnId(0, 0), seat=seat)


def moved(model, scale=0.5) -> None:
    """Change what is trained, as an update would."""
    torch.manual_seed(9)
    with torch.no_grad():
        for value in model.parameters():
            if value.requires_grad:
                value.add_(scale * torch.randn_like(value))


@pytest.mark.parametrize("lora_rank", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_frozen_seats_have_the_weights_of_the_start_bit_for_bit(make_tiny, lora_rank):
    model, tokenizer = make_tiny([" 1"], fallback="ascii", lora_rank=lora_rank)
    policy = LocalPolicy(model, tokenizer, batch_size=4)
    asked = [request(number, "frozen") for number in range(6)]
    before = policy.sample_all(asked)
    policy.freeze()
    moved(model)
    asyncio.run(policy.update(model, 3))
    after = {name: value.clone() for name, value in model.named_parameters()}
    mixed = [request(number, seat) for number, seat in product(range(6), ("frozen", "learning"))]
    replies = policy.sample_all(mixed)
    assert replies[::2] == before
    assert [one.policy_version for one in replies[:2]] == [0, 3]
    assert replies[1::2] == policy.sample_all(mixed[1::2])
    assert any(a.logprobs != b.logprobs for a, b in zip(replies[1::2], before, strict=True))
    for name, value in model.named_parameters():  # put back, bit for bit
        assert torch.equal(value, after[name])


def test_frozen_weights_are_put_back_where_sampling_fails(make_tiny):
    model, tokenizer = make_tiny([" 1"], fallback="ascii")
    policy = LocalPolicy(model, tokenizer)
    policy.freeze()
    moved(model)
    after = model.state_dict()["model.norm.weight"].clone()
    with pytest.raises(ValueError, match="does not fit a context"):
        policy.sample_all(
            [SampleRequest((Message("user", "x" * 9000),), 1.0, 2, (), 0, "a", TurnId(0, 0), seat="frozen")]
        )
    assert torch.equal(model.state_dict()["model.norm.weight"], after)


def test_the_programs_of_a_remote_reply_run_too(programs):
    program = "```python\nprint(7)\n```\n"
    other = ScriptedPolicy(lambda asked: "<solution>\\boxed{7}</solution>" if asked.begun else program)
    policy = ToolPolicy(SeatedPolicy(says("4"), other), programs)
    config = DebateConfig(seats=("learning", "remote"), num_agents=2, num_rounds=1, tools="python")
    [debate] = run_debates([PROBLEM], policy, config, seed=1)
    assert [len(turn.completion.calls or ()) for turn in debate.turns] == [0, 1]
