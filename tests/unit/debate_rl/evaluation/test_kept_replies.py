"""What is asked twice is sampled once, in one start and in the next."""

from __future__ import annotations

from dataclasses import replace

from debate import Message, SampleRequest
from debate.concurrency import run_async
from debate.policies.scripted import ScriptedPolicy
from debate.types import TurnId
from debate_rl.evaluation.folder import KeptReplies

REQUEST = SampleRequest((Message("user", "?"),), 1.0, 8, (), 0, "0:p", TurnId(0, 0))


def test_a_reply_is_sampled_once_and_kept(tmp_path):
    policy = ScriptedPolicy(lambda request: f"seed {request.seed}", tokens=True)
    file = tmp_path / "replies.jsonl"
    with KeptReplies(policy, file, stay=True) as kept:
        first = run_async(kept.sample(REQUEST))
        other = run_async(kept.sample(replace(REQUEST, seed=1)))
        assert [run_async(kept.sample(REQUEST)) for _ in range(2)] == [first, first]
        assert (first.text, other.text, len(policy.requests)) == ("seed 0", "seed 1", 2)
    file.write_bytes(file.read_bytes() + b'{"request": "torn')
    with KeptReplies(policy, file, stay=True) as kept:
        assert run_async(kept.sample(replace(REQUEST, seed=2))).text == "seed 2"
        assert run_async(kept.sample(REQUEST)) == first
        assert run_async(kept.sample(replace(REQUEST, seed=1))) == other
    assert len(policy.requests) == 3
