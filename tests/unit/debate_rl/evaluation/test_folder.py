"""The folder of an evaluation: what is asked twice is sampled once, and what was half removed made again."""

import shutil
from dataclasses import replace

import pytest

from debate import Message, SampleRequest
from debate.concurrency import run_async
from debate.policies.scripted import ScriptedPolicy
from debate.types import TurnId
from debate_rl.evaluation.folder import IDENTITY, KeptReplies, training_folder

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


def test_an_evaluation_that_was_half_removed_is_made_again(tmp_path, monkeypatch):
    def hold():
        with training_folder(tmp_path, 5, "", {}) as folder:
            for part in ("debates", "opening"):
                (folder / part).mkdir(exist_ok=True)
        return folder

    folder, once = hold(), shutil.rmtree

    def killed(path, *rest):
        once(path, *rest)
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        hold()
    monkeypatch.undo()
    assert (folder / IDENTITY).is_file()
    assert hold() == folder
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "debates", IDENTITY, "opening"]
