"""Which tokens are learnt, and that their loss is the one that transformers computes."""

import pytest
import torch

from debate.types import Message, Problem, Shot
from debate_rl.runs.weights import load_run_model
from debate_rl.sft.examples import Example
from debate_rl.sft.replies import ReplyEncoder, batch_rows
from learner.update.learner import Learner

PROBLEM = Problem("p", "1 + 1?", "2")
LOSS = "learner.losses.cross_entropy:cross_entropy"


@pytest.fixture
def encoded(sft_config):
    """Return encode(example, **settings) -> its pieces of text, and those that are learnt."""

    def encode(example, **settings):
        config = sft_config("x.jsonl", **settings)
        model, tokenizer = load_run_model(config)
        got = ReplyEncoder(config, model, tokenizer).encode(example)
        parts = (got.ids[~got.learnt], got.ids[got.learnt])
        return tuple(tokenizer.decode(part.tolist()) for part in parts), got

    return encode


def test_a_base_model_learns_the_reply_and_its_end_behind_the_prompt_of_rl(encoded):
    (prompt, reply), got = encoded(Example(PROBLEM, " It is 2."))
    assert prompt == "Question: 1 + 1?\nAnswer:"
    assert reply == " It is 2.<|end|>"
    first = int(got.learnt.argmax())
    assert got.learnt.tolist() == [False] * first + [True] * (len(got.ids) - first)
    assert first == len("Question: 1 + 1?\nAnswer:")  # one byte a token


def test_a_chat_model_reads_the_template_and_learns_its_end_token(encoded):
    example = Example(PROBLEM, "It is 2.")
    (prompt, reply), _ = encoded(example, model={"chat": True}, debate={"prompts": "direct"})
    assert prompt.startswith("<|user|>1 + 1?")
    assert prompt.endswith("<|assistant|>")
    assert reply == "It is 2.<|end|>"


def test_messages_of_a_row_are_the_prompt_as_they_are(encoded):
    chat = (Message("system", "Be brief."), Message("user", "hi"), Message("assistant", "ho"))
    example = Example(PROBLEM, "4", messages=(*chat, Message("user", "2 + 2?")))
    (prompt, reply), _ = encoded(example, model={"chat": True})
    assert prompt == "<|system|>Be brief.<|user|>hi<|assistant|>ho<|end|><|user|>2 + 2?<|assistant|>"
    assert reply == "4<|end|>"


@pytest.mark.parametrize(
    ("prompts", "debate", "expected"),
    [
        ("boxed", {}, "Two ones.\n\nThe answer is \\boxed{2}.<|end|>"),
        ("qa", {}, "Two ones.\n#### 2<|end|>"),
        (
            "default",
            {"num_agents": 3, "num_rounds": 2},
            "<solution>\nTwo ones.\n\nThe answer is \\boxed{2}.\n</solution><|end|>",
        ),
    ],
)
def test_a_written_solution_has_the_form_of_the_prompt_set(encoded, prompts, debate, expected):
    example = Example(PROBLEM, solution=Shot("1 + 1?", "Two ones.", "2"))
    tiny = {"tiny": {"hidden_size": 16, "layers": 1, "heads": 2, "context_tokens": 4096}}
    (_, reply), _ = encoded(example, debate={"prompts": prompts, **debate}, model=tiny)
    assert reply.strip() == expected.strip()


def test_what_a_tool_wrote_is_read_and_not_learnt(encoded):
    reply = "Run it.\n```python\nprint(2)\n```\n```output\n2\n```\nSo 2."
    (prompt, learnt), got = encoded(Example(PROBLEM, reply))
    assert learnt == "Run it.\n```python\nprint(2)\n```\nSo 2.<|end|>"
    assert prompt.endswith("Answer:```output\n2\n```\n")
    assert (~got.learnt).sum() == len("Question: 1 + 1?\nAnswer:") + len("```output\n2\n```\n")


@pytest.mark.parametrize("packed", [False, True])
def test_the_loss_is_that_of_transformers(sft_config, packed):
    config = sft_config("x.jsonl")
    model, tokenizer = load_run_model(config)
    encoder = ReplyEncoder(config, model, tokenizer)
    replies = ["2", " It is surely 2, as 1 and 1 make 2.", "no", "yes, of course"]
    examples = [encoder.encode(Example(PROBLEM, text)) for text in replies]
    length = max(len(one.ids) for one in examples)
    ids = torch.zeros((len(examples), length), dtype=torch.long)
    labels = torch.full((len(examples), length), -100)
    for row, one in enumerate(examples):
        ids[row, : len(one.ids)] = torch.from_numpy(one.ids)
        labels[row, : len(one.ids)] = torch.tensor(one.ids).long().where(torch.tensor(one.learnt), -100)
    expected = model(input_ids=ids, labels=labels).loss
    expected.backward()
    norm = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm().item()
    model.zero_grad()
    how = {"loss": LOSS, "micro_batch_tokens": 64, "share_prefixes": packed, "schedule": "constant"}
    metrics = Learner(model, config.learner.model_copy(update=how)).step(batch_rows(examples))
    assert metrics["loss"] == pytest.approx(expected.item(), abs=1e-5)
    assert metrics["grad_norm"] == pytest.approx(norm, rel=1e-4)
    assert metrics["action_tokens"] == sum(len(text) + 1 for text in replies)
    assert (metrics["read_tokens"] < metrics["row_tokens"]) == packed
