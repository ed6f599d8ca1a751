import copy
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

from debate.types import TurnId
from learner import LearnerConfig
from learner.update.batches import collate, micro_batches, pack, stars
from learner.update.forward import _norms, action_logprobs, check_sharing
from learner.update.learner import Learner
from learner.update.ranks import ALONE
from learner.update.tree_attention import (
    _cuda_backward,
    _cuda_forward,
    attending_in_trees,
    calls_of,
    tree_attention,
)

from .conftest import VOCABULARY, gpt2, qwen3, row_of

ROWS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=9), min_size=1, max_size=9)


def packed(rows, **limits):
    return pack([np.array(row, np.int64) for row in rows], **limits)


# The tree -----------------------------------------------------------------------------------------


def test_a_star_by_hand():
    tree = packed([[5, 6, 7, 1], [5, 6, 7, 2, 2], [5, 6, 7]], least=1)
    assert tree.tokens.tolist() == [5, 6, 7, 1, 2, 2]
    assert tree.positions.tolist() == [0, 1, 2, 3, 3, 4]
    assert [path.tolist() for path in tree.paths] == [[0, 1, 2, 3], [0, 1, 2, 4, 5], [0, 1, 2]]
    assert [(s.start, s.end, s.stop, s.level) for s in tree.segments] == [
        (0, 3, 6, 0),
        (3, 4, 4, 1),
        (4, 6, 6, 1),
    ]


def test_a_conversation_is_its_longest_row():
    """Two agents of one opening (5, 6); the turns of the first go on from each other."""
    tree = packed([[5, 6, 7, 1], [5, 6, 7, 1, 2, 2], [5, 6, 8], [5, 6, 7, 1, 2, 2, 9, 9]], levels=1, least=2)
    assert tree.tokens.tolist() == [5, 6, 7, 1, 2, 2, 9, 9, 8]
    assert [path.tolist() for path in tree.paths] == [
        [0, 1, 2, 3],
        [0, 1, 2, 3, 4, 5],
        [0, 1, 8],
        [0, 1, 2, 3, 4, 5, 6, 7],
    ]
    assert [(s.start, s.end, s.stop, s.level) for s in tree.segments] == [
        (0, 2, 9, 0),
        (2, 8, 8, 1),
        (8, 9, 9, 1),
    ]


@given(rows=ROWS, levels=st.integers(0, 4), least=st.integers(1, 4))
def test_every_row_is_on_its_path(rows, levels, least):
    tree = packed(rows, levels=levels, least=least)
    assert [tree.tokens[path].tolist() for path in tree.paths] == rows
    assert all(tree.positions[path].tolist() == list(range(len(path))) for path in tree.paths)
    assert len(tree.tokens) <= sum(map(len, rows))
    assert {at for path in tree.paths for at in path} == set(range(len(tree.tokens)))
    assert max(segment.level for segment in tree.segments) <= levels
    if levels == 0:
        assert len(tree.tokens) == sum(map(len, rows))


@given(rows=ROWS)
def test_with_room_for_every_level_each_prefix_is_held_once(rows):
    tree = packed(rows, levels=99, least=1)
    prefixes = {tuple(row[: end + 1]) for row in rows for end in range(len(row))}
    assert len(tree.tokens) == len(prefixes)


# Attention ----------------------------------------------------------------------------------------


def dense(query: Tensor, key: Tensor, value: Tensor, paths, scale: float) -> Tensor:
    """Attention by the definition: each token over those before it in the first row that holds it."""
    size, heads = query.shape[2], query.shape[1]
    sees = torch.zeros(size, size, dtype=torch.bool)
    for path in map(torch.tensor, paths):
        for end, at in enumerate(path.tolist()):
            sees[at] = False
            sees[at, path[: end + 1]] = True
    key, value = (t.repeat_interleave(heads // t.shape[1], 1) for t in (key, value))
    weights = (query @ key.transpose(-1, -2) * scale).masked_fill(~sees, float("-inf")).softmax(-1)
    return weights @ value


@settings(max_examples=60)
@given(
    rows=ROWS,
    levels=st.integers(0, 3),
    least=st.integers(1, 3),
    heads=st.sampled_from([(2, 2), (4, 2), (3, 1)]),
    seed=st.integers(0, 2**31),
)
def test_attention_is_that_of_each_row_alone(rows, levels, least, heads, seed):
    tree = packed(rows, levels=levels, least=least)
    draw = torch.Generator().manual_seed(seed)
    shapes = [(1, count, len(tree.tokens), 8) for count in (heads[0], heads[1], heads[1])]
    ours = [torch.randn(s, generator=draw, dtype=torch.float64).requires_grad_() for s in shapes]
    plain = [one.detach().clone().requires_grad_() for one in ours]
    weights = torch.randn(shapes[0], generator=draw, dtype=torch.float64)

    calls = calls_of(tree.segments, torch.device("cpu"))
    got = tree_attention(None, *ours, None, tree=calls, scaling=0.3)[0].transpose(1, 2)
    expected = dense(*plain, tree.paths, 0.3)
    torch.testing.assert_close(got, expected, atol=1e-12, rtol=1e-12)
    (got * weights).sum().backward()
    (expected * weights).sum().backward()
    for one, other in zip(ours, plain, strict=True):
        torch.testing.assert_close(one.grad, other.grad, atol=1e-12, rtol=1e-12)


def test_the_kernels_of_a_gpu_take_and_give_these_shapes():
    """Without a GPU torch knows their shapes alone."""
    tree = packed([[1, 2, 3, 4], [1, 2, 3, 5, 6], [1, 2, 7], [8, 9]], least=1)
    calls = calls_of(tree.segments, torch.device("meta"))
    shapes = [(1, heads, len(tree.tokens), 64) for heads in (4, 2, 2)]
    states = [torch.empty(shape, dtype=torch.bfloat16, device="meta") for shape in shapes]
    for call in calls:
        query, key, value = (
            s[:, :, at] for s, at in zip(states, (call.queries.at, call.keys.at, call.keys.at), strict=True)
        )
        out, total = _cuda_forward(query, key, value, call, 0.1)
        assert (out.shape, total.shape) == (query.shape, query.shape[:3])
        gradients = _cuda_backward(out, (query, key, value, out, total), call, 0.1)
        assert [g.shape for g in gradients] == [query.shape, key.shape, value.shape]


# The learner --------------------------------------------------------------------------------------


def lora():
    from peft import LoraConfig, get_peft_model

    return get_peft_model(qwen3(), LoraConfig(r=4, target_modules="all-linear", lora_alpha=8))


def learnt(model, rows_of, *, share: bool, **changes):
    """Two steps with what rows share read once, or with sharing asked for and found not to work."""
    model = copy.deepcopy(model)
    base = {"lr": 1e-3, "warmup_steps": 0, "micro_batch_tokens": 300, "share_prefixes": True}
    learner = Learner(model, LearnerConfig.model_validate(base | changes), total_steps=9)
    learner._shares = None if share else False
    metrics = [learner.step(rows_of(seed=seed)) for seed in range(2)]
    return [p.detach() for p in model.parameters()], metrics


@pytest.mark.parametrize(
    ("make", "changes", "tolerance"),
    [
        (gpt2, {"adam_eps": 1.0}, 1e-12),
        (qwen3, {}, 1e-5),
        pytest.param(
            qwen3,
            {"minibatches": 2, "epochs": 2, "beta": 0.1, "tis_cap": 2.0, "entropy_bonus": 0.01},
            1e-5,
            marks=pytest.mark.slow,
        ),
        pytest.param(qwen3, {"gradient_checkpointing": True}, 1e-5, marks=pytest.mark.slow),
        pytest.param(lora, {"beta": 0.1}, 1e-5, marks=pytest.mark.slow),
        pytest.param(
            lora,
            {"gradient_checkpointing": True, "loss": "gspo", "minibatches": 2},
            1e-5,
            marks=pytest.mark.slow,
        ),
    ],
    ids=["float64", "plain", "all", "checkpointing", "lora", "lora-checkpointing"],
)
def test_the_update_is_the_same(make, changes, tolerance, debate_rows):
    model = make()
    shared, counts = learnt(model, debate_rows, share=True, **changes)
    plain, expected = learnt(model, debate_rows, share=False, **changes)
    for one, other in zip(shared, plain, strict=True):
        torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)
    for got, wanted in zip(counts, expected, strict=True):
        assert (
            got["read_tokens"] < 0.6 * got["row_tokens"] == 0.6 * wanted["row_tokens"] < wanted["read_tokens"]
        )
        for name in wanted.keys() - {"read_tokens"}:
            assert got[name] == pytest.approx(wanted[name], rel=1e-4, abs=1e-6), name
    assert model.config._attn_implementation == "sdpa"


def conversations(*, seed=0, rounds=5):
    """Rows of two debates of two agents, whose turns go on from each other."""
    rng = np.random.default_rng(seed)
    rows = []
    for debate, agent in product(range(2), range(2)):
        ids = np.concatenate([np.arange(debate, debate + 50) % VOCABULARY, rng.integers(0, VOCABULARY, 4)])
        for round_ in range(rounds):
            reply, turn = rng.integers(0, VOCABULARY, 6), TurnId(agent, round_)
            rows.append(row_of(ids, reply, rng.standard_normal(6), turn=turn, debate=debate))
            ids = np.concatenate([ids, reply, rng.integers(0, VOCABULARY, 8)])
    return rows


def growing(*, seed=0, rounds=5):
    """Rows of two debates of two agents who are shown all rounds, 40 tokens each, and 3 of their own."""
    rng = np.random.default_rng(seed)
    rows = []
    for debate in range(2):
        shown = rng.integers(0, VOCABULARY, 50)
        for round_ in range(rounds):
            for agent in range(2):
                prompt = [*shown, *rng.integers(0, VOCABULARY, 3)]
                reply, turn = rng.integers(0, VOCABULARY, 6), TurnId(agent, round_)
                rows.append(row_of(prompt, reply, rng.standard_normal(6), turn=turn, debate=debate))
            shown = np.concatenate([shown, rng.integers(0, VOCABULARY, 40)])
    return rows


# Of a conversation 50 + 2 x 4, and of each agent 5 replies of 6 and 4 messages of 8, of which the last token
# predicts nothing; of a growing history 50 + 4 x 40 tokens that are shown, and of each of 10 rows 3 + 6 - 1.
@pytest.mark.parametrize(
    ("rows_of", "read"), [(conversations, 50 + 2 * (4 + 5 * 6 + 4 * 8 - 1)), (growing, 50 + 4 * 40 + 10 * 8)]
)
def test_what_grows_is_read_once_and_gives_the_same_update(rows_of, read):
    assert [len(star) for star in stars(rows_of())] == [10, 10]
    changes = {"minibatches": 2, "micro_batch_tokens": 600}
    shared, counts = learnt(qwen3(), rows_of, share=True, **changes)
    plain, expected = learnt(qwen3(), rows_of, share=False, **changes)
    for one, other in zip(shared, plain, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
    assert counts[0]["loss"] == pytest.approx(expected[0]["loss"], rel=1e-4)
    assert counts[0]["row_tokens"] == sum(len(row.input_ids) for row in rows_of())
    assert counts[0]["read_tokens"] == 2 * read


def test_solutions_of_one_agent_share_the_prompt_of_their_group(debate_rows):
    def rows_of(seed):
        return debate_rows(debates=6, rounds=1, agents=1, seed=seed)

    weights, metrics = learnt(qwen3(), rows_of, share=True)
    plain, expected = learnt(qwen3(), rows_of, share=False)
    for one, other in zip(weights, plain, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
    assert metrics[0]["sharing/difference"] < 1e-4
    for got, wanted in zip(metrics, expected, strict=True):
        assert got["read_tokens"] < 0.5 * got["row_tokens"]
        assert got["loss"] == pytest.approx(wanted["loss"], rel=1e-4)


def test_many_short_solutions_to_one_problem_fill_no_more_than_a_micro_batch(debate_rows):
    """Replies that begin alike share fewer tokens than are worth a segment, so they are read again."""
    rows = debate_rows(debates=60, rounds=1, agents=1)
    for number, row in enumerate(rows):
        end = np.array([number // 10] * 20 + [number], np.int64)
        start = rows[0].input_ids[: len(row.input_ids) - int(row.action_mask.sum())]
        rows[number] = row_of(start, end, [1.0] * len(end), turn=row.turn, debate=row.debate)
    batches = micro_batches(rows, 400, share=True)
    assert all(batch.positions <= 400 for batch in batches)
    assert sum(len(batch.mask) for batch in batches) == len(rows)


def test_a_star_is_cut_where_it_does_not_fit(debate_rows):
    rows = debate_rows()
    batches = micro_batches(rows, 150, share=True)
    assert all(batch.positions <= 150 for batch in batches)
    assert [batch.positions for batch in batches] == sorted((b.positions for b in batches), reverse=True)
    assert sum(len(batch.mask) for batch in batches) == len(rows)
    assert all(len(b.mask) == 1 for b in micro_batches(rows, 1, share=True))


def test_what_a_model_attended_in_before_comes_back():
    model = qwen3()
    with pytest.raises(RuntimeError), attending_in_trees(model):
        raise RuntimeError
    assert model.config._attn_implementation == "sdpa"


def test_a_model_that_attends_in_its_own_way_is_read_row_by_row(monkeypatch, debate_rows):
    """What packing gives is compared with plain reading before anything is learnt from it."""
    model = qwen3()
    kept = Qwen3Attention.forward

    def eager(self, *args, tree=None, **kwargs):
        self.config._attn_implementation = "sdpa"
        return kept(self, *args, **kwargs)

    monkeypatch.setattr(Qwen3Attention, "forward", eager)
    with pytest.warns(UserWarning, match="share_prefixes: the gradient of rows .* every row is read"):
        weights, metrics = learnt(model, debate_rows, share=True)
    plain, expected = learnt(model, debate_rows, share=False)
    assert all(map(torch.equal, weights, plain))
    assert metrics[0].pop("sharing/difference") > 4 * metrics[0].pop("sharing/noise")
    assert metrics == expected


def test_the_first_star_is_measured_with_the_signs_of_its_advantages(debate_rows):
    """The norm by the definition; what rounding does to it is below a millionth."""
    model, star = qwen3(), stars(debate_rows())[0]
    batch = collate(star)
    logprobs, _ = action_logprobs(model, batch)
    assert len(batch.advantages[batch.mask].sign().unique()) == 2
    total = (logprobs * batch.advantages.sign())[batch.mask].sum()
    expected = sum(float(g.square().sum()) for g in torch.autograd.grad(total, list(model.parameters())))
    size, noise = _norms(model, star, None, ALONE, (False, 10_000), (False, 1))
    assert size == pytest.approx(expected**0.5, rel=1e-5)
    assert 0 < noise < 1e-5 * size
    problem, found = check_sharing(model, star, max_tokens=10_000, compute=None)
    assert (problem, found["sharing/noise"]) == ("", noise / size)
    assert 0 < found["sharing/difference"] < 1e-5


@pytest.mark.parametrize(
    ("compute", "away", "noise", "right"),
    [
        (None, 0.0009, 0.0, True),
        (None, 0.0011, 0.0, False),
        (torch.bfloat16, 0.049, 0.0, True),
        (torch.bfloat16, 0.07, 0.02, True),
        (torch.bfloat16, 0.07, 0.017, False),
    ],
)
def test_a_star_may_differ_by_four_times_what_rounding_does(compute, away, noise, right, monkeypatch):
    norms = iter([(2.0, 2 * noise), (2.0, 2 * away)])
    monkeypatch.setattr("learner.update.forward._norms", lambda *_: next(norms))
    problem, found = check_sharing(qwen3(), [], max_tokens=1, compute=compute)
    assert found == {"sharing/difference": away, "sharing/noise": noise}
    assert (not problem) == right


@pytest.mark.parametrize("error", [RuntimeError, torch.OutOfMemoryError])
def test_a_check_that_fails_half_way_leaves_no_gradient(error, monkeypatch, debate_rows):
    passes = iter(range(99))

    def third(*args, **kwargs):
        if next(passes) == 2:
            raise error("no more")
        return action_logprobs(*args, **kwargs)

    monkeypatch.setattr("learner.update.forward.action_logprobs", third)
    learner = Learner(qwen3(), LearnerConfig(share_prefixes=True, gradient_checkpointing=True))
    if error is RuntimeError:
        with pytest.warns(UserWarning, match="does not work with this model"):
            assert learner._check_sharing(debate_rows()) == {}
    else:
        with pytest.raises(torch.OutOfMemoryError, match="no more"):  # it says nothing of the model
            learner._check_sharing(debate_rows())
    assert all(parameter.grad is None for parameter in learner.parameters)
    assert not any(module.training for module in learner.model.modules())


@pytest.mark.parametrize(
    ("make", "changes", "backend"),
    [
        pytest.param(qwen3, {"gradient_checkpointing": True}, "eager", marks=pytest.mark.slow),
        pytest.param(lora, {"gradient_checkpointing": True, "beta": 0.1}, "inductor", marks=pytest.mark.slow),
        pytest.param(qwen3, {"minibatches": 2, "beta": 0.1}, "inductor", marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning")
def test_compiled_layers_learn_the_same_and_are_compiled_for_no_other_length(
    make, changes, backend, monkeypatch, debate_rows
):
    """ "eager" has the graphs of "inductor" without its kernels, which a C compiler makes."""
    monkeypatch.setattr("learner.update.forward.BACKEND", backend)
    torch._dynamo.reset()
    graphs = []

    def rows_of(seed):
        graphs.append(torch._dynamo.utils.counters["stats"]["unique_graphs"])
        return debate_rows(seed=seed, agents=3 + seed)

    model = make()
    compiled, metrics = learnt(model, rows_of, share=True, compile=True, **changes)
    graphs.append(torch._dynamo.utils.counters["stats"]["unique_graphs"])
    assert graphs[0] < graphs[1] == graphs[2]
    plain, expected = learnt(model, rows_of, share=True, **changes)
    for one, other in zip(compiled, plain, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
    for got, wanted in zip(metrics, expected, strict=True):
        assert got["read_tokens"] < 0.6 * got["row_tokens"]
        for name in wanted:
            assert got[name] == pytest.approx(wanted[name], rel=1e-4, abs=1e-5), name
