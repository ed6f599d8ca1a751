"""What the first rank does with the others, which here are threads of this process."""

import threading
import time

import pytest
import torch

from debate_rl.config import Config
from debate_rl.inference.remote import Remote, answer, new_address
from debate_rl.training import ranks as ranks_module
from debate_rl.training.ranks import RankError, RankGroup, _Served, joined
from learner.update.ranks import Ranks


class Stub:
    """A share that keeps what it is asked, and fails where it is to."""

    def __init__(self, index: int) -> None:
        self.ranks = Ranks(index, 3)
        self.asked: list[object] = []

    def add(self, *values: object) -> int:
        self.asked += values
        return len(self.asked)

    def fail(self, error: Exception, index: int, event: threading.Event | None = None) -> None:
        if self.ranks.index == index:
            raise error
        if event is not None:
            assert event.wait(60)


@pytest.fixture
def group(tmp_path, monkeypatch):
    """Return the group of the first of three ranks, and the others' shares."""
    monkeypatch.setattr(ranks_module, "_ignore_signals", lambda: None)
    monkeypatch.setattr(ranks_module, "SETTLE_S", 0)
    addresses, others = [new_address(tmp_path, f"rank_{index}") for index in (1, 2)], [Stub(1), Stub(2)]
    left = [threading.Event(), threading.Event()]

    def served(one, address, gone):
        options = {"ready": dict, "left": gone.set}
        return threading.Thread(target=answer, args=(_Served(one), address), kwargs=options)

    threads = list(map(served, others, addresses, left))
    for thread in threads:
        thread.start()
    group = RankGroup(Stub(0), [Remote(address, patience_s=60) for address in addresses])
    group.saved = lambda: "2 of 8 steps are saved"
    yield group, others
    group.close()
    for thread, gone in zip(threads, left, strict=True):
        thread.join(60)
        assert gone.is_set()
        assert not thread.is_alive()


def test_every_rank_does_what_is_asked_and_the_first_ones_result_counts(group):
    first, others = group
    others[0].add("before")
    assert first.ask("add", 1, 2) == 2
    assert first.ask("add", None, own=(torch.ones(1),)) == 3
    assert [one.asked for one in others] == [["before", 1, 2, None], [1, 2, None]]
    assert first.share.asked == [1, 2, torch.ones(1)]


def test_another_ranks_mistake_is_the_users_and_its_failure_names_it(group):
    first, _ = group
    with pytest.raises(ValueError, match=r"^too little$"):
        first.ask("fail", ValueError("too little"), 1)
    with pytest.raises(RankError, match=r"^rank 2: MemoryError: too little; 2 of 8 steps are saved$"):
        first.ask("fail", MemoryError("too little"), 2)
    with pytest.raises(RankError, match=r"^rank 0: too little; 2 of 8 steps are saved$"):
        first.ask("fail", RuntimeError("too little"), 0)
    first.refuse_lost()


def test_a_rank_that_ended_is_named_with_what_is_saved(group):
    first, _ = group
    first._others[1].close()
    while first._others[1].alive:
        time.sleep(0.01)
    said = r"^rank 2 of 3 has ended; 2 of 8 steps are saved$"
    with pytest.raises(RankError, match=said):
        first.ask("add")
    with pytest.raises(RankError, match=said):
        first.refuse_lost()


def test_a_rank_that_waits_for_one_that_failed_leaves_with_a_line(group, monkeypatch, capfd):
    """As in a kernel of NCCL, which nothing interrupts."""
    first, _ = group
    event, codes = threading.Event(), []

    def leave(code: int) -> None:
        codes.append(code)
        event.set()

    monkeypatch.setattr(ranks_module, "GRACE_S", 0.01)
    monkeypatch.setattr(ranks_module.os, "_exit", leave)
    error = MemoryError("too little")
    with pytest.raises(RankError):
        first.ask("fail", error, 2, own=(error, 2, event))
    assert codes == [2]
    assert capfd.readouterr().err == "debate: rank 2: MemoryError: too little; 2 of 8 steps are saved\n"


def test_torchruns_variables_say_which_rank_this_is(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    assert Ranks.launched() == Ranks(0, 1)
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "6")
    assert Ranks.launched() == Ranks(0, 1)  # some other program's
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert Ranks.launched() == Ranks(2, 6)


def config_of(**model) -> Config:
    return Config.model_validate({"model": {"tiny": {}, **model}})


@pytest.mark.parametrize(
    ("model", "gpus", "said"),
    [
        (
            {},
            2,
            r"^model.device='auto': torchrun started 3 ranks, which need a GPU each; this machine has 2; ",
        ),
        ({"dtype": "float16"}, 8, r"^model.dtype=float16: cannot be trained by several ranks; "),
        (
            {"policy": "vllm", "vllm": {"sleep": True}},
            8,
            r"^model\.vllm\.sleep = true: with 3 ranks, engines .* never sleep; set it to \"auto\"$",
        ),
    ],
)
def test_ranks_that_this_machine_cannot_have_are_refused(model, gpus, said, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    with pytest.raises(ValueError, match=said), joined(config_of(**model), Ranks(0, 3)):
        pass
