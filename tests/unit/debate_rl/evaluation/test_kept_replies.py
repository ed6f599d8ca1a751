"""What is asked twice is sampled once, in one start and in the next, with the seconds that it took."""

from __future__ import annotations

from dataclasses import replace

from debate import Message, SampleRequest
from debate.concurrency import run_async
from debate.policies.scripted import ScriptedPolicy
from debate.types import TurnId
from debate_rl.evaluation.kept_replies import Clock, KeptReplies, key_of

REQUEST = SampleRequest((Message("user", "?"),), 1.0, 8, (), 0, "0:p", TurnId(0, 0))


def test_a_reply_is_sampled_once_and_kept_with_its_seconds(tmp_path):
    policy = ScriptedPolicy(lambda request: f"seed {request.seed}", tokens=True)
    file = tmp_path / "replies.jsonl"
    with KeptReplies(policy, file, stay=True) as kept:
        first = run_async(kept.sample(REQUEST))
        other = run_async(kept.sample(replace(REQUEST, seed=1)))
        assert [run_async(kept.sample(REQUEST)) for _ in range(2)] == [first, first]
        assert (first.text, other.text, len(policy.requests)) == ("seed 0", "seed 1", 2)
        took = kept.seconds[key_of(REQUEST)]
    file.write_bytes(file.read_bytes() + b'{"request": "torn')
    with KeptReplies(policy, file, stay=True) as kept:
        assert run_async(kept.sample(replace(REQUEST, seed=2))).text == "seed 2"
        assert run_async(kept.sample(REQUEST)) == first
        assert run_async(kept.sample(replace(REQUEST, seed=1))) == other
        assert kept.seconds[key_of(REQUEST)] == took >= 0
    assert len(policy.requests) == 3


def test_policies_on_one_clock_share_its_seconds(tmp_path):
    class Asking(ScriptedPolicy):
        async def sample(self, request):
            return await other.sample(request)

    times = iter([0.0, 1.0, 2.0, 3.0])  # one begins, the other begins and ends, one ends
    clock, policy = Clock(lambda: next(times)), ScriptedPolicy(lambda _: "yes", tokens=True)
    one = KeptReplies(Asking({}), tmp_path / "one.jsonl", clock=clock)
    with one, KeptReplies(policy, tmp_path / "other.jsonl", clock=clock) as other:
        run_async(one.sample(REQUEST))
        assert (one.seconds[key_of(REQUEST)], other.seconds[key_of(REQUEST)]) == (2.5, 0.5)
